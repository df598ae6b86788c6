import Testing

@testable import SegmentedDownload

@Suite("Descriptors and connections")
struct DescriptorLimitTests {
    @Test(
        "Files and connections fit into the limit of descriptors, with those already open",
        arguments: [
            // descriptors, files, connections
            (1024, 5, 985), (64, 5, 25), (64, 1, 37), (1024, 500, 250), (40, 5, 4), (30, 5, 1), (24, 5, 1), (3, 5, 1),
            (0, 1, 1),
        ])
    func connections(descriptors: Int, files: Int, expected: Int) {
        let connections = DescriptorLimit.connections(files: files, descriptors: descriptors)
        #expect(connections == expected)
        let together = min(files, DescriptorLimit.files(beside: connections, descriptors: descriptors))
        #expect(connections == 1 || together == 1 || 24 + connections + 3 * together <= descriptors)
    }

    @Test("The largest possible limits do not overflow")
    func unlimited() {
        #expect(DescriptorLimit.connections(files: 5, descriptors: .max) > 1 << 40)
        #expect(DescriptorLimit.connections(files: .max, descriptors: 1024) == 250)
    }
}
