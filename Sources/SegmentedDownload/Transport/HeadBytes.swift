import NIOCore

/// Keeps field values that are not UTF-8 distinguishable, see ``ObsText``: in the heads of responses before they are decoded, in the
/// heads of requests after they are encoded. Bodies pass as they are.
///
/// It sits between TLS and the encoder. A head begins with the first byte after a request, for the client sends no request before it
/// has the response to the one before. Nothing is held back but the end of a line that has a byte from 0x80 on, until that line ends.
final class HeadBytes: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Present while a response's head is read.
    private var scanner: HeadScanner?
    /// The end of a line, from its first byte that is not ASCII on.
    private var held: [UInt8] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .byteBuffer(let buffer) = Self.unwrapOutboundIn(data), buffer.readableBytes > 0 else {
            return context.write(data, promise: promise)
        }
        // The transport sends requests without bodies: this is a head.
        if self.scanner == nil { self.scanner = HeadScanner() }
        guard let bytes = ObsText.decoded(buffer.readableBytesView) else {
            return context.write(data, promise: promise)
        }
        context.write(
            Self.wrapOutboundOut(.byteBuffer(context.channel.allocator.buffer(bytes: bytes))), promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard self.scanner != nil else { return context.fireChannelRead(data) }
        var buffer = Self.unwrapInboundIn(data)
        // Whoever gets the end of a response may send the next request, and then what is left is looked at again.
        while buffer.readableBytes > 0 {
            let piece = self.takePiece(of: &buffer, context.channel.allocator)
            if piece.readableBytes > 0 { context.fireChannelRead(Self.wrapInboundOut(piece)) }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.scanner = nil
        if !self.held.isEmpty {
            context.fireChannelRead(Self.wrapInboundOut(context.channel.allocator.buffer(bytes: self.held)))
            self.held = []
        }
        context.fireChannelInactive()
    }

    /// What is handed on next: usually all of the buffer; where something in a head is rewritten or held back, that head without what
    /// follows it, or as much of it as has come.
    private func takePiece(of buffer: inout ByteBuffer, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        let all = buffer.readableBytes
        guard var scanner = self.scanner else { return buffer.readSlice(length: all) ?? buffer }
        let (count, isASCII) = buffer.withUnsafeReadableBytes { scanner.scan($0) }
        self.scanner = scanner.isDone ? nil : scanner
        if isASCII, self.held.isEmpty {
            // An interim head is followed by another, a final one by what is not looked at.
            return buffer.readSlice(length: scanner.isDone ? all : count) ?? buffer
        }
        var piece = allocator.buffer(capacity: count)
        for byte in buffer.readBytes(length: count) ?? [] {
            guard byte >= 0x80 || !self.held.isEmpty else {
                piece.writeInteger(byte)
                continue
            }
            self.held.append(byte)
            if byte == UInt8(ascii: "\n") {
                piece.writeBytes(ObsText.encoded(self.held) ?? self.held)
                self.held = []
            }
        }
        if scanner.isDone {
            // Nothing but a head that is given up ends within a line.
            piece.writeBytes(self.held)
            self.held = []
        }
        return piece
    }
}

/// Finds the end of a response's head, as llhttp sees it: the first line without a character after one that has some.
struct HeadScanner {
    /// 128 KiB: twice what the transport accepts.
    private static let lengthMax = 128 << 10

    /// `HTTP/1.1 103`, as far as it has come: the beginning of the first line.
    private var start: [UInt8] = []
    private var length = 0
    private var isStarting = true
    private var isLineEmpty = true
    /// Whether no more of this connection's bytes are looked at before the next request.
    private(set) var isDone = false

    private static let startLength = "HTTP/1.1 103".utf8.count

    /// Looks at bytes up to the end of a head, or at all.
    ///
    /// - Returns: how many were looked at, and whether all these are ASCII.
    mutating func scan(_ bytes: UnsafeRawBufferPointer) -> (count: Int, isASCII: Bool) {
        var isASCII = true
        for (index, byte) in bytes.enumerated() {
            if byte >= 0x80 { isASCII = false }
            if self.take(byte) { return (index + 1, isASCII) }
        }
        return (bytes.count, isASCII)
    }

    /// - Returns: whether a head ends with this byte, or is none.
    private mutating func take(_ byte: UInt8) -> Bool {
        self.length += 1
        switch byte {
        case UInt8(ascii: "\n"):
            guard self.isLineEmpty else {
                self.isLineEmpty = true
                self.isStarting = false
                break
            }
            // Empty lines before the first are skipped.
            guard !self.isStarting else { break }
            if self.isInterim { self = HeadScanner() } else { self.isDone = true }
            return true
        case UInt8(ascii: "\r"): break
        default:
            self.isLineEmpty = false
            if self.isStarting, self.start.count < Self.startLength { self.start.append(byte) }
        }
        self.isDone = self.length > Self.lengthMax || !self.isResponse
        return self.isDone
    }

    /// Whether it may be one: what is none is the decoder's business.
    private var isResponse: Bool { zip(self.start, "HTTP/".utf8).allSatisfy { $0 == $1 } }

    /// Whether another head follows, as it does behind 100 and 103; what follows 101 is no HTTP.
    private var isInterim: Bool {
        let digits = self.start.suffix(3)
        return self.start.count == Self.startLength && digits.first == UInt8(ascii: "1")
            && !digits.elementsEqual("101".utf8)
            && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
