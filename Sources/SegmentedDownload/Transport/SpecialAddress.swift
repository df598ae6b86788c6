import SegmentedDownloadCore

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Addresses that are not on the public internet (the IANA special-purpose registries, RFC 6890).
enum SpecialAddress {
    /// Why a connection to a host is not allowed. It does not tell the address, nor whether a server answers there.
    static func refusal(of host: String) -> DownloadError {
        DownloadError(
            .policy, "\(host) does not have a public address",
            hint: "The client that added the download may only reach such addresses", isTransient: false)
    }

    /// Whether an IPv4 or IPv6 address is not public. True for a text that is no address.
    static func isSpecial(_ text: String) -> Bool {
        var four = [UInt8](repeating: 0, count: 4)
        if inet_pton(AF_INET, text, &four) == 1 { return Self.isSpecial(four[...]) }
        var bytes = [UInt8](repeating: 0, count: 16)
        // Without the zone of a link-local address.
        guard inet_pton(AF_INET6, String(text.prefix { $0 != "%" }), &bytes) == 1 else { return true }
        // IPv4-mapped and NAT64 addresses (RFC 6052) end with an IPv4 address; 6to4 ones (RFC 3056) have it after two bytes.
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
            return Self.isSpecial(bytes[12...])
        }
        if bytes[..<12].elementsEqual([0x00, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) {
            return Self.isSpecial(bytes[12...])
        }
        if bytes[0] == 0x20, bytes[1] == 0x02 { return Self.isSpecial(bytes[2..<6]) }
        // Only 2000::/3 is assigned for global unicast, without documentation and Teredo.
        guard bytes[0] & 0xE0 == 0x20 else { return true }
        return bytes[0] == 0x20 && bytes[1] == 0x01 && (bytes[2] < 0x02 || bytes[2] == 0x0D && bytes[3] == 0xB8)
    }

    private static func isSpecial(_ address: ArraySlice<UInt8>) -> Bool {
        let bytes = Array(address)
        switch (bytes[0], bytes[1]) {
        case (0, _), (10, _), (127, _), (169, 254), (192, 168), (224...255, _): return true
        case (100, 64..<128), (172, 16..<32), (198, 18...19): return true
        case (192, 0): return bytes[2] == 0 || bytes[2] == 2
        case (198, 51): return bytes[2] == 100
        case (203, 0): return bytes[2] == 113
        default: return false
        }
    }
}
