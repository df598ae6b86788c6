import NIOCore
import NIOHTTP1

/// Answers the requests of one connection in sequence.
final class OriginHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private enum State {
        /// Waits for a request. Becomes `answering` or `closed`.
        case idle
        /// Plays an answer. Becomes any of the others.
        case answering(OriginExchange)
        /// All of an answer is written, and the system does not have it yet. Becomes `idle`, `silent`, `resetting` or
        /// `closed`.
        case draining(OriginExchange, Answer.Ending)
        /// Sends nothing more, but notices a close. Becomes `closed`.
        case silent(OriginExchange)
        /// Waits until the peer has acknowledged what was sent. Becomes `closed`.
        case resetting
        /// Terminal.
        case closed
    }

    /// 4 MiB per turn, so that a fast reader does not block the event loop for the others.
    private static let writesPerTurnMax = 16
    /// More pipelined requests than any client should have; it bounds the memory they occupy.
    private static let pendingMax = 64

    private let resources: OriginResources
    private let log: OriginLog
    private var connection = 0
    private var state = State.idle
    private var pending: [OriginRequest] = []
    /// Present while answering.
    private var player: AnswerPlayer?
    private var hasCloseNotify = true
    /// Paces all answers of this connection that have the same rate.
    private var pacer: Pacer?
    private var writesUnderWay = 0
    private var isPumping = false
    private var wakeUp: Scheduled<Void>?

    init(resources: OriginResources, log: OriginLog) {
        self.resources = resources
        self.log = log
    }

    func channelActive(context: ChannelHandlerContext) {
        self.connection = self.log.connectionOpened()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        switch self.state {
        case .answering(let exchange), .draining(let exchange, _), .silent(let exchange): exchange.finish()
        case .idle, .resetting, .closed: break
        }
        self.enterClosed()
        self.log.connectionClosed()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = self.unwrapInboundIn(data) else { return }
        guard self.pending.count < Self.pendingMax else { return context.close(promise: nil) }
        let request = OriginRequest(
            method: head.method.rawValue,
            target: head.uri,
            headers: head.headers.map { ($0.name, $0.value) },
            isKeepAlive: head.isKeepAlive
        )
        self.pending.append(request)
        self.answerNext(context)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        self.pump(context)
        context.fireChannelWritabilityChanged()
    }

    /// After a malformed request or a transport error no answer is possible.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func answerNext(_ context: ChannelHandlerContext) {
        guard case .idle = self.state, !self.pending.isEmpty else { return }
        let now = NIODeadline.now()
        let (answer, exchange) = self.resources.answer(
            self.pending.removeFirst(),
            connection: self.connection,
            peer: context.remoteAddress?.ipAddress ?? "",
            unixSeconds: WallClock.unixSeconds()
        )
        if let rate = answer.rate, self.pacer?.rate != rate { self.pacer = Pacer(rate: rate, now: now) }
        let pacers = [answer.rate == nil ? nil : self.pacer, exchange.sharedPacer].compactMap { $0 }
        self.player = AnswerPlayer(answer, pacers: pacers, at: now)
        self.hasCloseNotify = answer.hasCloseNotify
        self.state = .answering(exchange)
        self.pump(context)
    }

    private func pump(_ context: ChannelHandlerContext) {
        guard case .answering(let exchange) = self.state, !self.isPumping else { return }
        self.isPumping = true
        self.play(exchange, context)
        self.isPumping = false
        // Last, because it may start the next answer.
        self.concludeIfDrained(context)
    }

    /// Runs steps until it must wait: for a time, for the socket, or for other connections.
    private func play(_ exchange: OriginExchange, _ context: ChannelHandlerContext) {
        for _ in 0..<Self.writesPerTurnMax {
            // A write may fail and close the channel meanwhile; then there is no player.
            guard context.channel.isWritable, let step = self.player?.next(at: .now()) else { return }
            switch step {
            case .wait(let deadline):
                return self.wake(context, at: deadline) { self.pump(context) }
            case .write(let buffer, let bodyCount):
                self.write(buffer, bodyCount: bodyCount, for: exchange, context)
            case .finish(let ending):
                self.player = nil
                self.state = .draining(exchange, ending)
                return
            }
        }
        self.wake(context, at: .now()) { self.pump(context) }
    }

    private func write(
        _ buffer: ByteBuffer, bodyCount: Int, for exchange: OriginExchange, _ context: ChannelHandlerContext
    ) {
        self.writesUnderWay += 1
        context.writeAndFlush(self.wrapOutboundOut(buffer)).assumeIsolated().whenSuccess {
            self.writesUnderWay -= 1
            if bodyCount > 0 { exchange.sent(bodyCount) }
            self.concludeIfDrained(context)
        }
    }

    private func concludeIfDrained(_ context: ChannelHandlerContext) {
        guard case .draining(let exchange, let ending) = self.state, self.writesUnderWay == 0 else { return }
        switch ending {
        case .keepAlive:
            exchange.finish()
            self.state = .idle
            self.answerNext(context)
        case .stall:
            self.state = .silent(exchange)
        case .close:
            exchange.finish()
            self.enterClosed()
            self.hasCloseNotify ? context.close(promise: nil) : context.channel.closeTransport()
        case .reset:
            exchange.finish()
            self.state = .resetting
            self.reset(context, giveUp: .now() + .seconds(1))
        }
    }

    /// A reset discards what is not acknowledged, so this waits until the peer has read it.
    private func reset(_ context: ChannelHandlerContext, giveUp: NIODeadline) {
        guard case .resetting = self.state else { return }
        guard context.channel.unacknowledgedCount == 0 || NIODeadline.now() > giveUp else {
            return self.wake(context, at: .now() + .milliseconds(1)) { self.reset(context, giveUp: giveUp) }
        }
        self.enterClosed()
        context.channel.resetTransport()
    }

    private func enterClosed() {
        self.state = .closed
        self.player = nil
        self.pending = []
        self.wakeUp?.cancel()
    }

    private func wake(_ context: ChannelHandlerContext, at deadline: NIODeadline, _ task: @escaping () -> Void) {
        self.wakeUp?.cancel()
        self.wakeUp = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline, task)
    }
}
