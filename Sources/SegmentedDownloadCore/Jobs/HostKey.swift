/// A host in the records that processes share: a hash of the key that ``ConcurrencyBudget`` has for it.
package struct HostKey: Hashable, Sendable {
    package let rawValue: UInt64

    /// FNV-1a, because every process must compute the same value. The records do not show which hosts were asked.
    package init(_ host: String) {
        self.rawValue = host.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    init(rawValue: UInt64) { self.rawValue = rawValue }
}
