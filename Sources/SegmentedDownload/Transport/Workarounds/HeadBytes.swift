import NIOCore

/// Encodes field values that are not UTF-8, so that they stay distinguishable (see ``ObsText``): in response heads
/// before they are decoded, in request heads after they are encoded.
///
/// The handler sits between TLS and the encoder. Bodies pass unchanged. A response head begins with the first byte
/// after a request, because the client does not pipeline. Only the rest of a line with a byte from 0x80 on is held back
/// until the line ends.
///
/// Workaround: swift-nio's decoder of response heads has no access to the bytes of a value. No upstream issue yet; see
/// ``ObsText``.
final class HeadBytes: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Scans the current response head; `nil` outside of heads.
    private var scanner: HeadScanner?
    /// The rest of a line, beginning with its first byte that is not ASCII.
    private var held: [UInt8] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .byteBuffer(let buffer) = Self.unwrapOutboundIn(data), buffer.readableBytes > 0 else {
            return context.write(data, promise: promise)
        }
        // The transport sends no request bodies, so this is a head.
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
        // A handler further up may send the next request when it receives the end of a response, so the state is
        // checked again.
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

    /// The next bytes to pass on: usually the whole buffer. If part of a head is rewritten or held back, only that
    /// head, or as much of it as has arrived.
    private func takePiece(of buffer: inout ByteBuffer, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        let all = buffer.readableBytes
        guard var scanner = self.scanner else { return buffer.readSlice(length: all) ?? buffer }
        let (count, isASCII) = buffer.withUnsafeReadableBytes { scanner.scan($0) }
        self.scanner = scanner.isDone ? nil : scanner
        if isASCII, self.held.isEmpty {
            // An interim head is followed by another head. A final one is followed by a body, which is passed on with
            // it.
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
            // Only a head that exceeds the limit ends within a line.
            piece.writeBytes(self.held)
            self.held = []
        }
        return piece
    }
}

/// Finds the end of a response head as llhttp does: the first empty line after a line that is not empty.
struct HeadScanner {
    /// 128 KiB: twice what the transport accepts.
    private static let lengthMax = 128 << 10

    /// The first bytes of the first line, up to the length of `HTTP/1.1 103`.
    private var start: [UInt8] = []
    private var length = 0
    private var isStarting = true
    private var isLineEmpty = true
    /// Whether the rest of this connection's bytes are ignored until the next request.
    private(set) var isDone = false

    private static let startLength = "HTTP/1.1 103".utf8.count

    /// Scans bytes up to the end of a head or of the buffer.
    ///
    /// - Returns: The number of bytes scanned, and whether all of them are ASCII.
    mutating func scan(_ bytes: UnsafeRawBufferPointer) -> (count: Int, isASCII: Bool) {
        var isASCII = true
        for (index, byte) in bytes.enumerated() {
            if byte >= 0x80 { isASCII = false }
            if self.take(byte) { return (index + 1, isASCII) }
        }
        return (bytes.count, isASCII)
    }

    /// Processes a byte.
    ///
    /// - Returns: Whether the head ends with this byte, or the bytes are not a head.
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

    /// Whether the bytes so far may be a status line. The decoder reports others as errors.
    private var isResponse: Bool { zip(self.start, "HTTP/".utf8).allSatisfy { $0 == $1 } }

    /// Whether another head follows, as after 100 and 103. A 101 is followed by another protocol.
    private var isInterim: Bool {
        let digits = self.start.suffix(3)
        return self.start.count == Self.startLength && digits.first == UInt8(ascii: "1")
            && !digits.elementsEqual("101".utf8)
            && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
