#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Which thread this is.
struct ThreadIdentity: Hashable, Sendable {
    private let value: UInt

    static var current: ThreadIdentity { ThreadIdentity(value: UInt(pthread_self())) }
}
