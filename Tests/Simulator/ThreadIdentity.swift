#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Identifies a thread.
struct ThreadIdentity: Hashable, Sendable {
    private let value: UInt

    static var current: ThreadIdentity { ThreadIdentity(value: UInt(pthread_self())) }
}
