import SegmentedDownload
import SegmentedDownloadCore

/// Another user of the machine, who may write to the download directory and plants files where ours would be.
///
/// All that a manifest or a record can say for them is said: the right resource, tag and length, and the checksums of the
/// bytes that they hold. Only their owner or mode tells that they are not ours.
struct Stranger {
    /// A file that was planted, as it must stay.
    struct Plant {
        let file: Int
        let inode: SimulatedDisk.Inode
        let bytes: [UInt8]
    }

    private enum Trick: CaseIterable {
        /// A part without bytes, that its owner goes on writing to.
        case emptyPart
        /// A part with every byte of another file, and the manifest that claims them.
        case claimedPart
        /// A finished file that says by its attribute what it is.
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

    /// Plants something for a file of which nothing is there yet.
    mutating func plant(for file: Int, using generator: inout SplitMix64) {
        let name = "file\(file)"
        guard !self.disk.names.keys.contains(where: { $0 == name || $0.hasPrefix(name + ".") }) else { return }
        // Another user's, or one that the own umask left open to all.
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
            // The manifest alone would be believed.
            let manifest = self.disk.plant(
                name + ".segdl", self.manifest(of: part, resource),
                ownership: Ownership(owner: SimulatedDisk.user, permissions: 0o600))
            self.plants.append(Plant(file: file, inode: manifest, bytes: manifest.bytes))
        case .finishedFile:
            let inode = self.place(name, of: file, bytes, ownership)
            let record = FinishedRecord(
                resource: resource, length: Int64(bytes.count), crc: CRC32(of: bytes), modified: inode.modified, salt: 7
            )
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

    /// What a run of ours would have written at a pause after its last byte.
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

    /// What the run has done that it must not; then the stranger takes what is theirs away.
    mutating func leave(_ endings: [String]?) -> [String] {
        var violations: [String] = []
        for plant in self.plants where plant.inode.bytes != plant.bytes {
            violations.append("a file that another user planted for file \(plant.file) was written to")
        }
        for file in Set(self.plants.map(\.file)).sorted() {
            if let ending = endings?[file], ending == "completed" || ending == "already" {
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
