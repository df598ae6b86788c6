/// What the control file of another program states about a partial file.
///
/// Decoding is total: any bytes give either ranges within the file or nil.
package struct ControlFile: Hashable, Sendable {
    /// The programs whose control files are read. The raw value is the program's name.
    package enum Program: String, Hashable, Sendable, CaseIterable {
        case aria2, axel

        /// What the program appends to the name of the partial file.
        package var suffix: String {
            switch self {
            case .aria2: ".aria2"
            case .axel: ".st"
            }
        }
    }

    package let program: Program
    /// The complete length in bytes, absent if the program does not store it.
    package let completeLength: Int64?
    /// The bytes that the program has not written yet, ordered and disjoint.
    package let missing: [Range<Int64>]

    /// 16 MiB: aria2's file for 100 TiB in pieces of 1 MiB. A longer file is treated as damage.
    package static let lengthMaximum = 16 << 20

    package init?(_ program: Program, _ bytes: [UInt8]) {
        guard bytes.count <= Self.lengthMaximum else { return nil }
        let content: (completeLength: Int64?, missing: [Range<Int64>])?
        switch program {
        case .aria2: content = Aria2ControlFile(bytes).map { ($0.completeLength, $0.missing) }
        case .axel: content = AxelControlFile(bytes).map { (nil, $0.missing) }
        }
        guard let content else { return nil }
        self.program = program
        (self.completeLength, self.missing) = content
    }

    /// The bytes that the program has written, of a file of this length.
    package func present(in length: Int64) -> [Range<Int64>] { self.missing.complement(in: length) }
}
