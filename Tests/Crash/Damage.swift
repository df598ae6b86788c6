import Foundation
import SegmentedDownloadCore

/// Damage to the files of an interrupted download between two runs.
struct Damage: Sendable, CustomStringConvertible {
    enum Part: Hashable, Sendable {
        case flip(byte: Int, bit: Int)
        case zero(Range<Int>)
        case resize(Int)
        case remove
        /// Replaces the part by another file of the same name.
        case replace(Data)
    }

    let description: String
    /// Maps the manifest to its damaged bytes; `nil` removes it.
    var manifest: (@Sendable (Data) -> Data?)?
    var part: Part?
    /// Bytes for the manifest's draft.
    var draft: Data?

    init(
        _ description: String, part: Part? = nil, draft: Data? = nil, manifest: (@Sendable (Data) -> Data?)? = nil
    ) {
        self.description = description
        self.manifest = manifest
        self.part = part
        self.draft = draft
    }
}

/// The two files of an interrupted download, and those of a download of another file of the same length.
struct Specimen: Sendable {
    var part: Data
    var manifest: Data
    var otherPart: Data
    var otherManifest: Data

    private static let record = ManifestCodec.recordLength

    /// The header stores its own length after its mark and version.
    private var headerLength: Int {
        self.manifest[10..<14].enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
    }

    private var recordsCount: Int { (self.manifest.count - self.headerLength) / Self.record }

    /// Flips each bit of the manifest.
    func flips() -> [Damage] {
        (0..<self.manifest.count * 8).map { bit in
            Damage("bit \(bit) of the manifest flipped") { manifest in
                var bytes = Array(manifest)
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                return Data(bytes)
            }
        }
    }

    /// Cuts, zeroes, garbles and rearranges the manifest at and around every record, and the header at every byte.
    func manifestDamages() -> [Damage] {
        var damages: [Damage] = []
        let ends = (0...self.recordsCount).map { self.headerLength + $0 * Self.record }
        let places = Set(ends.flatMap { [$0 - 1, $0, $0 + 1, $0 + 16] }).union(0..<self.headerLength)
            .filter { $0 < self.manifest.count }.sorted()
        for place in places {
            damages.append(Damage("the manifest cut at \(place)") { $0.prefix(place) })
            damages.append(
                Damage("the manifest zero from \(place)") { $0.prefix(place) + Data(count: $0.count - place) })
        }
        for index in 0..<self.recordsCount {
            let start = self.headerLength + index * Self.record
            let range = start..<start + Self.record
            damages.append(
                Damage("record \(index) zero") {
                    $0[..<range.lowerBound] + Data(count: Self.record) + $0[range.upperBound...]
                })
            damages.append(Damage("record \(index) gone") { $0[..<range.lowerBound] + $0[range.upperBound...] })
            damages.append(
                Damage("record \(index) twice") { $0[..<range.upperBound] + $0[range] + $0[range.upperBound...] })
            guard index > 0 else { continue }
            let before = start - Self.record..<start
            damages.append(
                Damage("records \(index - 1) and \(index) swapped") {
                    $0[..<before.lowerBound] + $0[range] + $0[before] + $0[range.upperBound...]
                })
        }
        let other = self.otherManifest
        let part = self.part
        damages += [
            Damage("no manifest") { _ in nil },
            Damage("the manifest empty") { _ in Data() },
            Damage("the manifest zero") { Data(count: $0.count) },
            Damage("garbage behind the manifest") { $0 + Data((0..<77).map { UInt8(truncatingIfNeeded: $0 &* 37) }) },
            Damage("another's record behind the manifest") { $0 + other.suffix(Self.record) },
            Damage("the manifest is another's") { _ in other },
            Damage("the manifest is the part's first bytes") { _ in part.prefix(4096) },
            Damage("a torn draft", draft: other.prefix(40)),
            Damage("an empty draft", draft: Data()),
            Damage("a draft of zeros", draft: Data(count: 300)),
            Damage("another's draft and no manifest", draft: other) { _ in nil },
        ]
        return damages
    }

    /// Alters the part at random places, cuts, lengthens and exchanges it.
    func partDamages(_ count: Int, seed: UInt64) -> [Damage] {
        var generator = SplitMix64(seed: seed)
        var damages: [Damage] = []
        let length = self.part.count
        for _ in 0..<count {
            let place = Int.random(in: 0..<length, using: &generator)
            let bit = Int.random(in: 0..<8, using: &generator)
            let end = min(length, place + Int.random(in: 1...(256 << 10), using: &generator))
            damages += [
                Damage("bit \(bit) of byte \(place) of the part flipped", part: .flip(byte: place, bit: bit)),
                Damage("the part zero in \(place)..<\(end)", part: .zero(place..<end)),
                Damage("the part cut at \(place)", part: .resize(place)),
                Damage("the part longer by \(place)", part: .resize(length + place)),
            ]
        }
        let (manifest, otherPart, otherManifest) = (self.manifest, self.otherPart, self.otherManifest)
        damages += [
            Damage("the part empty", part: .resize(0)),
            Damage("the part zero", part: .zero(0..<length)),
            Damage("the part longer by 1", part: .resize(length + 1)),
            Damage("the part shorter by 1", part: .resize(length - 1)),
            Damage("no part", part: .remove),
            Damage("no part and no manifest", part: .remove) { _ in nil },
            Damage("no part and a torn manifest", part: .remove) { $0.prefix(20) },
            Damage("no part and a manifest of zeros", part: .remove) { Data(count: $0.count) },
            Damage("the part copied", part: .replace(self.part)),
            Damage("the part is another's", part: .replace(otherPart)),
            Damage("part and manifest are another's", part: .replace(otherPart)) { _ in otherManifest },
            Damage("the part is the manifest", part: .replace(manifest)),
        ]
        let part = self.part
        damages.append(
            Damage("part and manifest exchanged", part: .replace(manifest)) { _ in part })
        return damages
    }
}
