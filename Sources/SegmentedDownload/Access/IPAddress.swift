#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Addresses as hosts.
enum IPAddress {
    /// The bytes of an address, most significant first: 4 or 16; nil if the text is not one. IPv6 addresses may be in brackets.
    static func bytes(of host: String) -> [UInt8]? {
        let text = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, text, &bytes) == 1 { return bytes }
        }
        return nil
    }
}
