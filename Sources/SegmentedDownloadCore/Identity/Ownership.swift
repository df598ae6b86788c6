/// Who owns a file and who may write to it, as far as its mode says.
///
/// A part, a manifest or the record of a finished file is believed only if nobody but the effective user could have
/// written it: in a directory that several users may write to, any of them could have planted it.
package struct Ownership: Hashable, Sendable {
    package let owner: UInt32
    /// The nine permission bits and those above them.
    package let permissions: UInt32

    package init(owner: UInt32, permissions: UInt32) {
        self.owner = owner
        self.permissions = permissions
    }

    /// Write permission for group and others. With an access control list the group's bit covers all of its entries.
    package static let foreignWrite: UInt32 = 0o022

    /// Why a file is not believed, as a clause for a message; nil if it is.
    package func objection(user: UInt32) -> String? {
        guard self.owner == user else { return "belongs to user \(self.owner), not to user \(user)" }
        guard self.permissions & Self.foreignWrite == 0 else {
            return "may be written by other users (mode \(String(self.permissions & 0o777, radix: 8)))"
        }
        return nil
    }

    /// The failure to report about a file that is not believed; nil if it is.
    package func failure(user: UInt32, path: String) -> Failure? {
        self.objection(user: user).map { why in
            Failure(
                .exists, "\(path.printable) \(why): its content is not trusted. It stays as it is",
                hint: self.owner == user
                    ? "If you trust it: chmod go-w, then run the command again. Else move it away or choose another name with -o"
                    : "Move it away, or choose another name with -o")
        }
    }
}
