import SegmentedDownload
import SegmentedDownloadCore

/// Another user of the machine, who may write to the download directory and plants files under segdl's names.
///
/// The planted manifests and records are as convincing as possible: they have the right resource, tag and length, and
/// checksums of the bytes in the file. Only owner and permissions show that the files are not segdl's.
struct Stranger {
    /// A planted file, which must not change.
    struct Plant {
        let file: Int
        let inode: SimulatedDisk.Inode
        let bytes: [UInt8]
    }

    private enum Trick: CaseIterable {
        /// A part without bytes; its owner may write to it at any time.
        case emptyPart
        /// A part with every byte of another file, and a manifest that claims them.
        case claimedPart
        /// A finished file with an attribute that claims it is the requested one.
        case finishedFile
    }

    private static let user: UInt32 = 1001

    private let disk: SimulatedDisk
    private let network: SimulatedNetwork
    private(set) var plants: [Plant] = []

    init(disk: SimulatedDisk, network: SimulatedNetwork) {
        self.disk = disk
        self.network = network
    }

    /// Plants a file for a destination that has no files yet.
    mutating func plant(for file: Int, using generator: inout SplitMix64) {
        let name = "file\(file)"
        guard !self.disk.names.keys.contains(where: { $0 == name || $0.hasPrefix(name + ".") }) else { return }
        // Another user's file, or a file of the same user that anyone may write to.
        let ownership =
            Bool.random(using: &generator)
            ? Ownership(owner: Self.user, permissions: 0o644)
            : Ownership(
                owner: SimulatedDisk.user, permissions: [0o666, 0o664].randomElement(using: &generator) ?? 0o666)
        let origin = self.network.origins[file]
        let bytes = origin.current.bytes.map { ~$0 }
        let resource = self.resource(file)
        switch Trick.allCases.randomElement(using: &generator) ?? .emptyPart {
        case .emptyPart: self.place(name + ".segdl-part", of: file, [], ownership)
        case .claimedPart:
            let part = self.place(name + ".segdl-part", of: file, bytes, ownership)
            // The manifest alone would pass every check.
            let manifest = self.disk.plant(
                name + ".segdl", self.manifest(of: part, resource),
                ownership: Ownership(owner: SimulatedDisk.user, permissions: 0o600))
            self.plants.append(Plant(file: file, inode: manifest, bytes: manifest.bytes))
        case .finishedFile:
            let inode = self.place(name, of: file, bytes, ownership)
            var record = FinishedRecord(
                resource: resource, length: Int64(bytes.count), crc: CRC32(of: bytes), modified: inode.modified, salt: 7
            )
            // It got its name a second after its last byte was written.
            inode.changed += 1_000_000_000
            record.changed = inode.changed
            inode.attributes[FinishedRecord.attribute] = record.encoded
            inode.durableAttributes = inode.attributes
        }
    }

    @discardableResult
    private mutating func place(
        _ name: String, of file: Int, _ bytes: [UInt8], _ ownership: Ownership
    ) -> SimulatedDisk.Inode {
        let inode = self.disk.plant(name, bytes, ownership: ownership)
        self.plants.append(Plant(file: file, inode: inode, bytes: bytes))
        return inode
    }

    private func resource(_ file: Int) -> RemoteResource {
        let origin = self.network.origins[file]
        let name = ResourceName(requested: "http://origin/file\(file)", target: "http://origin/file\(file)")
        return RemoteResource(
            completeLength: Int64(origin.current.bytes.count), validator: origin.validator, locator: .named(name))
    }

    /// The manifest that a run of segdl would have written at a pause after its last byte.
    private func manifest(of part: SimulatedDisk.Inode, _ resource: RemoteResource) -> [UInt8] {
        let header = Manifest.Header(
            id: 7, resource: resource, completeLength: Int64(part.bytes.count), device: SimulatedStorage.device,
            inode: part.number, bootID: self.disk.bootID, sources: ["http://origin/file"], digests: [])
        var claims: [Manifest.Record] = []
        var offset: Int64 = 0
        while offset < part.bytes.count {
            let end = min(BlockLayout.blockEnd(after: offset), Int64(part.bytes.count))
            claims.append(
                .claim(
                    Claim(
                        offset: offset, length: end - offset, crc: CRC32(of: Array(part.bytes[Int(offset)..<Int(end)])))
                ))
            offset = end
        }
        claims.append(.pause(claims: Int64(claims.count), modified: part.modified))
        return claims.enumerated().reduce(ManifestCodec.encode(header)) { bytes, record in
            bytes + ManifestCodec.encode(record.element, sequence: UInt32(record.offset), of: header.id)
        }
    }

    /// Returns the run's violations, and removes the planted files.
    ///
    /// - Parameter isRequired: Whether a file has the digests that the run's user requires. Its owner then does not matter.
    mutating func leave(_ endings: [String]?, isRequired: (Int) -> Bool) -> [String] {
        var violations: [String] = []
        for plant in self.plants where plant.inode.bytes != plant.bytes {
            violations.append("a file that another user planted for file \(plant.file) was written to")
        }
        for file in Set(self.plants.map(\.file)).sorted() {
            if let ending = endings?[file], ending == "completed" || ending == "already" && !isRequired(file) {
                violations.append("file \(file) is \(ending) with what another user planted")
            }
        }
        for (name, inode) in self.disk.names where self.plants.contains(where: { $0.inode === inode }) {
            self.disk.unplant(name)
        }
        self.plants = []
        return violations
    }
}
