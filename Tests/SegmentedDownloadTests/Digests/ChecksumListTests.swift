import Testing

@testable import SegmentedDownload

@Suite("Lists of checksums")
struct ChecksumListTests {
    private static let sha1 = String(repeating: "a1", count: 20)
    private static let sha256 = String(repeating: "b2", count: 32)
    private static let md5 = String(repeating: "c3", count: 16)

    @Test("All digests of a path count, the strongest first, in GNU's format and in BSD's")
    func names() throws {
        let list = ChecksumList(
            """
            -----BEGIN PGP SIGNED MESSAGE-----
            Hash: SHA256

            \(Self.md5)  a.iso
            \(Self.sha256) *./a.iso\r
            SHA1 (dir/a.iso) = \(Self.sha1)
            SHA1 (b (1).iso) = \(Self.sha1)
            SHA2-256 (c.iso)= \(Self.sha256)
            \\\(Self.sha1)  odd\\\\name
            iQIzBAEBCAAdFiEE=abcdef
            """)
        #expect(try list.digest(of: "a.iso") == ExpectedDigest(.sha256, hex: Self.sha256))
        for path: FilePath in ["a.iso", "x/a.iso"] {
            let digests = try list.digests(of: path).map(\.description)
            #expect(digests == ["sha256=\(Self.sha256)", "md5=\(Self.md5)"])
        }
        #expect(try list.digests(of: "dir/a.iso").map(\.algorithm) == [.sha1])
        #expect(try list.digest(of: "b (1).iso") == ExpectedDigest(.sha1, hex: Self.sha1))
        #expect(try list.digest(of: "c.iso") == ExpectedDigest(.sha256, hex: Self.sha256))
        for name: FilePath in ["", "iso", "x"] {
            #expect(try list.digest(of: name) == nil)
            #expect(try list.digests(of: name).isEmpty)
        }
        #expect(try list.digest(of: "odd\\name") == ExpectedDigest(.sha1, hex: Self.sha1))
    }

    @Test("Lines that cannot be read are kept with their numbers; blank lines, comments and a signature are not such")
    func unread() throws {
        let list = ChecksumList(
            """
            \u{FEFF}\(Self.sha256)  first
            # comment
            ; comment

            \(Self.sha256.dropLast())  short
            MD5 (first) = 00
            SHA384 (first) = 00
            SIZE (first) = 5
            TIMESTAMP = 5
            MD5 (other) = zz
            """)
        #expect(list.unread.map(\.number) == [5, 6, 7, 8, 9, 10])
        #expect(list.lostLine?.number == 5)
        #expect(try list.digest(of: "first") != nil)
        let signed = ChecksumList(
            """
            -----BEGIN PGP SIGNED MESSAGE-----
            Hash: SHA256

            \(Self.sha256)  a
            - \(Self.sha1)  b
            -----BEGIN PGP SIGNATURE-----
            Version: 1

            iQIzBAEBCAAdFiEE=abcdef
            -----END PGP SIGNATURE-----
            unread
            """)
        #expect(signed.files.map(\.path) == ["a", "b"])
        #expect(signed.unread == [.init(number: 11, text: "unread")])
        #expect(ChecksumList("\(Self.md5)  f\nSHA384 (f) = 00\nTIMESTAMP = 5").lostLine == nil)
        #expect(ChecksumList("\(Self.md5)  f\nSHA384 (g) = 00").lostLine?.number == 2)
    }

    @Test("A digest alone belongs to the only file; two of them belong to none")
    func alone() throws {
        #expect(
            try ChecksumList("\(Self.sha256.uppercased())\n").digest(of: "x")
                == ExpectedDigest(.sha256, hex: Self.sha256))
        #expect(try ChecksumList("\(Self.sha256)\n\(Self.sha1)\n").digest(of: "x") == nil)
        #expect(try ChecksumList("\(Self.sha256)  other\n").digest(of: "x") == nil)
        for text in ["", "<html>404</html>", "\(Self.sha256)x  a", "abc  a", "SHA256 (a) = zz"] {
            #expect(ChecksumList(text).isEmpty, "\(text)")
        }
    }

    @Test("Of files with the same name the longest matching path counts; a tie is an error")
    func sameName() throws {
        let list = ChecksumList("\(Self.md5)  ./netboot/f\n\(Self.sha256)  ./netboot/gtk/f\n")
        #expect(try list.digest(of: "x/netboot/f") == ExpectedDigest(.md5, hex: Self.md5))
        #expect(try list.digest(of: "netboot/gtk/f") == ExpectedDigest(.sha256, hex: Self.sha256))
        let twice = ChecksumList("\(Self.sha256)  a/f\n\(String(Self.sha256.reversed()))  b/f\n")
        #expect(throws: DownloadError.self) { try twice.digest(of: "f") }
        #expect(try twice.digest(of: "b/f")?.hex == String(Self.sha256.reversed()))
        // Digests of two files are not those of one, and a file does not have two of one algorithm.
        let two = ChecksumList("\(Self.sha256)  a/f\n\(Self.md5)  b/f\n")
        #expect(throws: DownloadError.self) { try two.digests(of: "f") }
        let weak = ChecksumList("\(Self.sha256)  f\n\(Self.md5)  f\n\(String(Self.md5.reversed()))  f\n")
        #expect(throws: DownloadError.self) { try weak.digest(of: "f") }
        let equal = ChecksumList("\(Self.sha256)  a/f\n\(Self.sha256)  b/f\n")
        #expect(try equal.digests(of: "f").map(\.hex) == [Self.sha256])
    }
}
