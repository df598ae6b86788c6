import Testing

@testable import SegmentedDownloadCore

/// The state of a running digest, in the manifest's log.
@Suite struct DigestStateTests {
    private static let header = Manifest.Header(
        id: 7, resource: RemoteResource(completeLength: 10 << 20), completeLength: 10 << 20, device: 1, inode: 2,
        bootID: "b", sources: ["http://h/f"], digests: [])

    private static func manifest(_ records: [Manifest.Record]) throws -> Manifest {
        try ManifestCodec.decode(
            records.enumerated().reduce(into: ManifestCodec.encode(Self.header)) {
                $0 += ManifestCodec.encode($1.element, sequence: UInt32($1.offset), of: 7)
            })
    }

    private static func state(_ algorithm: UInt8, _ offset: Int64, count: Int) -> DigestState {
        DigestState(algorithm: algorithm, offset: offset, bytes: (0..<count).map { UInt8($0 ^ 0xA5) })
    }

    @Test("A written state of any length is read back", arguments: [16, 20, 32, 64])
    func roundTrip(count: Int) throws {
        let states = [Self.state(1, 1 << 20, count: count), Self.state(2, 2 << 20, count: 16)]
        let records = states.flatMap(\.pieces).map { Manifest.Record.digest($0) }
        #expect(try Self.manifest(records).digestStates == states)
        // Of two states the later one counts.
        let later = Self.state(1, 5 << 20, count: count)
        #expect(
            try Self.manifest(records + later.pieces.map { .digest($0) }).digestStates == [states[1], later])
    }

    @Test("A state whose pieces are not complete and in order is ignored")
    func torn() throws {
        let pieces = Self.state(3, 1 << 20, count: 32).pieces.map { Manifest.Record.digest($0) }
        #expect(pieces.count == 3)
        for missing in pieces.indices {
            var rest = pieces
            rest.remove(at: missing)
            #expect(try Self.manifest(rest).digestStates.isEmpty)
        }
        #expect(try Self.manifest([pieces[0], pieces[2], pieces[1]]).digestStates.isEmpty)
        let other = Self.state(4, 1 << 20, count: 32).pieces.map { Manifest.Record.digest($0) }
        #expect(try Self.manifest([pieces[0], other[1], pieces[2]]).digestStates.isEmpty)
    }

    @Test("Rewriting bytes drops the states computed from them")
    func forgotten() throws {
        let records = Self.state(3, 1 << 20, count: 32).pieces.map { Manifest.Record.digest($0) }
        #expect(try Self.manifest(records + [.forget(from: 1 << 20)]).digestStates.count == 1)
        #expect(try Self.manifest(records + [.forget(from: (1 << 20) - 1)]).digestStates.isEmpty)
        #expect(try Self.manifest([records[0], .forget(from: 0)] + records.dropFirst()).digestStates.isEmpty)
        // A state past the file's end is ignored.
        let beyond = Self.state(3, (10 << 20) + 128, count: 32).pieces.map { Manifest.Record.digest($0) }
        #expect(try Self.manifest(beyond).digestStates.isEmpty)
    }

    @Test("A pause after a state is still a pause")
    func paused() throws {
        let records = Self.state(3, 1 << 20, count: 32).pieces.map { Manifest.Record.digest($0) }
        #expect(try Self.manifest(records + [.pause(claims: 0, modified: 5)]).pausedModified == 5)
    }
}
