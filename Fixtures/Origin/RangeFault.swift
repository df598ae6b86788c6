/// A wrong answer to a range, or a right but unusual one. Several apply in the order given.
enum RangeFault: Hashable, Sendable {
    /// Ignores `Range` and sends no `Accept-Ranges`.
    case no
    /// Ignores `Range` and claims to support it.
    case advertised
    /// Ignores a range that starts past zero.
    case firstOnly
    /// Label and body start at a later offset.
    case shift(Int64)
    /// The body starts at a later offset than the label says.
    case mislabel(Int64)
    /// The label states a later offset than the body's.
    case relabel(Int64)
    case short(Int64)
    case long(Int64)
    case noContentRange
    /// The total is `*`.
    case star
    /// Another total for ranges that start past zero.
    case total(UInt64)
    case multipart
    case garbage
    /// The first half, to a request without a range.
    case unasked
    case huge
    /// Every range is unsatisfiable.
    case always416

    init(_ value: BehaviourValue) throws {
        let fields = try value.fields(1...2)
        switch (fields[0].text, fields.count) {
        case ("no", 1): self = .no
        case ("advertised", 1): self = .advertised
        case ("first-only", 1): self = .firstOnly
        case ("shift", 2): self = .shift(try fields[1].byteCount())
        case ("mislabel", 2): self = .mislabel(try fields[1].byteCount())
        case ("relabel", 2): self = .relabel(try fields[1].byteCount())
        case ("short", 2): self = .short(try fields[1].positiveByteCount())
        case ("long", 2): self = .long(try fields[1].byteCount())
        case ("no-content-range", 1): self = .noContentRange
        case ("star", 1): self = .star
        case ("total", 2): self = .total(UInt64(try fields[1].byteCount()))
        case ("multipart", 1): self = .multipart
        case ("garbage", 1): self = .garbage
        case ("unasked", 1): self = .unasked
        case ("huge", 1): self = .huge
        case ("416", 1): self = .always416
        default: throw value.error("is unknown")
        }
    }
}

/// The part of a representation to send, and its labels.
struct RangeAnswer: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case whole
        case partial
        case unsatisfiable
    }

    private(set) var kind = Kind.whole
    private(set) var body: Range<Int64>
    private(set) var contentRange: String?
    private(set) var isMultipart = false
    private(set) var isAdvertised = true

    init(to field: ByteRangeField, size: Int64, faults: [RangeFault]) {
        self.body = 0..<size
        let asked = faults.reduce(field) { self.ask($0, size: size, fault: $1) }
        switch asked {
        case .ignored:
            return
        case .unsatisfiable:
            self.kind = .unsatisfiable
            self.contentRange = "bytes */\(size)"
        case .bytes(let bytes):
            self.kind = .partial
            self.body = bytes
            self.tell(bytes, size: size, faults: faults)
        }
    }

    /// The range that the origin answers to a field.
    private mutating func ask(_ field: ByteRangeField, size: Int64, fault: RangeFault) -> ByteRangeField {
        switch (fault, field) {
        case (.no, _):
            self.isAdvertised = false
            return .ignored
        case (.advertised, _):
            return .ignored
        case (.firstOnly, .bytes(let bytes)) where bytes.lowerBound > 0:
            return .ignored
        case (.unasked, .ignored) where size > 1:
            return .bytes(0..<(size / 2))
        case (.always416, .bytes):
            return .unsatisfiable
        case (.shift(let distance), .bytes(let bytes)):
            return .bytes(Self.moved(bytes, by: distance, within: size))
        case (.short(let length), .bytes(let bytes)):
            return .bytes(bytes.lowerBound..<(bytes.lowerBound + min(Int64(bytes.count), length)))
        case (.long(let length), .bytes(let bytes)):
            return .bytes(bytes.lowerBound..<(bytes.upperBound + min(size - bytes.upperBound, length)))
        default:
            return field
        }
    }

    private mutating func tell(_ bytes: Range<Int64>, size: Int64, faults: [RangeFault]) {
        var label = bytes
        var total = "\(size)"
        for fault in faults {
            switch fault {
            case .mislabel(let distance):
                // Content continues past the representation's end, so the length stays.
                let start = bytes.lowerBound + min(distance, .max - bytes.upperBound)
                self.body = start..<(start + Int64(bytes.count))
            case .relabel(let distance): label = Self.moved(bytes, by: distance, within: size)
            case .star: total = "*"
            case .total(let other): if bytes.lowerBound > 0 { total = "\(other)" }
            case .huge: total = "18446744073709551000"
            case .multipart: self.isMultipart = true
            case .no, .advertised, .firstOnly, .shift, .short, .long, .unasked, .always416, .noContentRange, .garbage:
                break
            }
        }
        self.contentRange = "bytes \(label.lowerBound)-\(label.upperBound - 1)/\(total)"
        if faults.contains(.garbage) { self.contentRange = "bytes \(label.lowerBound)--/of \(total)" }
        if faults.contains(.noContentRange) { self.contentRange = nil }
    }

    /// The range moved by a distance, cut at the end and never empty.
    private static func moved(_ bytes: Range<Int64>, by distance: Int64, within size: Int64) -> Range<Int64> {
        let start = min(bytes.lowerBound + min(distance, .max - bytes.upperBound), size - 1)
        return start..<max(start + 1, min(size, start + Int64(bytes.count)))
    }
}
