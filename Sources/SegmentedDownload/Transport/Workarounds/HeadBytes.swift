import NIOCore

/// Rewrites responses before they are decoded, and request heads after they are encoded: field values that are not UTF-8, so that they
/// stay distinguishable (see ``ObsText``), and what the decoder refuses although it leaves no doubt (see ``HeadText`` and
/// ``ChunkText``).
///
/// The handler sits between TLS and the encoder. A response head begins with the first byte after a request, because the client does
/// not pipeline. It is held until it is complete. Bodies pass unchanged, but for the framing of chunks.
///
/// Workaround: async-http-client does not repeat a request on a new connection after the server has closed one that was used before
/// (RFC 9110, section 9.2.2), and does not say that it was: ``StaleConnection`` does. No upstream issue yet; the client would have
/// to repeat it itself.
///
/// Workaround: swift-nio's decoder of response heads has no access to the bytes of a value. No upstream issue yet; see
/// ``ObsText``.
final class HeadBytes: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private enum State {
        /// Nothing is rewritten until the next request.
        case passing
        /// Within a head, of which ``held`` has what has arrived.
        case head(HeadScanner)
        case chunks(ChunkText)
        /// The response was refused, and the connection is being closed.
        case refused
    }

    private var state = State.passing
    /// Not in the state, so that a byte more costs no copy of those before.
    private var held: [UInt8] = []
    /// The number of requests that were sent on the connection.
    private var requests = 0
    /// Whether anything has arrived since the last one.
    private var hasAnswer = false

    /// The server closed the connection, on which it had answered before, instead of answering.
    struct StaleConnection: Error {}

    private var isStale: Bool { self.requests > 1 && !self.hasAnswer }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .byteBuffer(let buffer) = Self.unwrapOutboundIn(data), buffer.readableBytes > 0 else {
            return context.write(data, promise: promise)
        }
        // The transport sends no request bodies, so this is a head. The response to an earlier request has ended.
        self.requests += 1
        self.hasAnswer = false
        switch self.state {
        case .head, .refused: break
        case .passing, .chunks: self.state = .head(HeadScanner())
        }
        guard let bytes = ObsText.decoded(buffer.readableBytesView) else {
            return context.write(data, promise: promise)
        }
        context.write(
            Self.wrapOutboundOut(.byteBuffer(context.channel.allocator.buffer(bytes: bytes))), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = Self.unwrapInboundIn(data)
        self.hasAnswer = true
        // A handler further up may send the next request when it receives the end of a response, so the state is
        // checked again.
        while buffer.readableBytes > 0 {
            switch self.state {
            case .refused: return
            case .passing:
                context.fireChannelRead(Self.wrapInboundOut(buffer))
                return
            case .chunks(var chunks):
                let rewritten = buffer.withUnsafeReadableBytes { chunks.read($0) }
                self.state = chunks.isOver ? .passing : .chunks(chunks)
                let piece = rewritten.map { context.channel.allocator.buffer(bytes: $0) } ?? buffer
                if piece.readableBytes > 0 { context.fireChannelRead(Self.wrapInboundOut(piece)) }
                return
            case .head(let scanner): self.readHead(&buffer, scanner, context)
            }
        }
    }

    private func readHead(_ buffer: inout ByteBuffer, _ given: HeadScanner, _ context: ChannelHandlerContext) {
        var scanner = given
        let (count, isEnd) = buffer.withUnsafeReadableBytes { scanner.scan($0) }
        let isWhole = self.held.isEmpty
        self.held += buffer.readableBytesView.prefix(count)
        guard isEnd else {
            self.state = .head(scanner)
            buffer.moveReaderIndex(forwardBy: count)
            return
        }
        let held = self.held
        self.held = []
        var bytes = held
        var next = State.passing
        switch scanner.ending {
        case .none: break
        case .interim, .final:
            switch HeadText.read(held) {
            case .refused(let reason):
                self.state = .refused
                context.fireErrorCaught(HeadGuard.Refusal(reason: reason))
                return context.close(promise: nil)
            case .head(let read, let isChunked):
                bytes = read
                if isChunked { next = .chunks(ChunkText()) }
            }
        }
        if scanner.ending == .interim { next = .head(HeadScanner()) }
        self.state = next
        // The usual head is passed on with what follows it, unless that may have to be rewritten too.
        if case .passing = next, isWhole, bytes == held {
            let all = buffer.readSlice(length: buffer.readableBytes) ?? buffer
            return context.fireChannelRead(Self.wrapInboundOut(all))
        }
        buffer.moveReaderIndex(forwardBy: count)
        context.fireChannelRead(Self.wrapInboundOut(context.channel.allocator.buffer(bytes: bytes)))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.fireErrorCaught(self.isStale ? StaleConnection() : error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if self.isStale { context.fireErrorCaught(StaleConnection()) }
        if !self.held.isEmpty {
            context.fireChannelRead(Self.wrapInboundOut(context.channel.allocator.buffer(bytes: self.held)))
            self.held = []
        }
        // What remains of a refused response is dropped.
        if case .refused = self.state {} else { self.state = .passing }
        context.fireChannelInactive()
    }
}

/// Finds the end of a response head: the first empty line after a line that is not empty.
struct HeadScanner {
    enum Ending {
        /// The bytes are no head, or it is too long. The decoder reports that.
        case none
        /// Another head follows, as after 100 and 103. A 101 is followed by another protocol.
        case interim
        case final
    }

    /// 128 KiB: twice what the transport accepts.
    static let lengthMax = 128 << 10

    /// The first bytes of the first line, up to the length of `HTTP/1.1 103`.
    private var start: [UInt8] = []
    private var length = 0
    private var isStarting = true
    private var isLineEmpty = true
    private(set) var ending = Ending.none

    private static let startLength = "HTTP/1.1 103".utf8.count

    /// Scans bytes up to the end of a head or of the buffer.
    ///
    /// - Returns: The number of bytes scanned, and whether the head ends with them, or they are not a head.
    mutating func scan(_ bytes: UnsafeRawBufferPointer) -> (count: Int, isEnd: Bool) {
        for (index, byte) in bytes.enumerated() {
            if self.take(byte) { return (index + 1, true) }
        }
        return (bytes.count, false)
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        self.length += 1
        switch byte {
        case UInt8(ascii: "\n"):
            guard self.isLineEmpty else {
                self.isLineEmpty = true
                self.isStarting = false
                break
            }
            // Empty lines before the status line are skipped.
            guard !self.isStarting else { break }
            self.ending = self.isInterim ? .interim : .final
            return true
        case UInt8(ascii: "\r"): break
        default:
            self.isLineEmpty = false
            if self.isStarting, self.start.count < Self.startLength { self.start.append(byte) }
        }
        return self.length > Self.lengthMax || !self.isResponse
    }

    /// Whether the bytes so far may be a status line.
    private var isResponse: Bool { zip(self.start, "http/".utf8).allSatisfy { $0 | 0x20 == $1 } }

    private var isInterim: Bool {
        let digits = self.start.suffix(3)
        return self.start.count == Self.startLength && digits.first == UInt8(ascii: "1")
            && !digits.elementsEqual("101".utf8)
            && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
