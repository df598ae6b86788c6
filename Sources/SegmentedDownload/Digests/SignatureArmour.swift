/// The armour around a text that is signed with OpenPGP (RFC 9580, section 7), as a reader of its lines meets it.
struct SignatureArmour {
    private enum Place {
        /// Before the signed text, between it and the signature, or without armour.
        case text
        /// The lines such as `Hash: SHA256` after the beginning, up to an empty one.
        case headers
        case signature
    }

    private var place = Place.text
    private var isSigned = false

    /// Whether a line belongs to the armour. If not, the dash escape of a signed line is removed from it.
    mutating func contains(_ line: inout String) -> Bool {
        switch self.place {
        case .text:
            switch line {
            case "-----BEGIN PGP SIGNED MESSAGE-----":
                (self.place, self.isSigned) = (.headers, true)
                return true
            case "-----BEGIN PGP SIGNATURE-----":
                self.place = .signature
                return true
            default:
                if self.isSigned, line.hasPrefix("- ") { line.removeFirst(2) }
                return false
            }
        case .headers:
            if line.isEmpty {
                self.place = .text
                return true
            }
            // A text without the empty line is not lost.
            guard !line.hasPrefix("Hash: "), !line.hasPrefix("NotDashEscaped: "), !line.hasPrefix("Comment: ") else {
                return true
            }
            self.place = .text
            return false
        case .signature:
            if line == "-----END PGP SIGNATURE-----" { (self.place, self.isSigned) = (.text, false) }
            return true
        }
    }
}
