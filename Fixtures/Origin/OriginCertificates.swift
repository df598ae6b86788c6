/// The fixture's certificate authority and the leaves it signed, EC P-256, valid from 2020 until 2120 unless named
/// otherwise.
///
/// They protect nothing: the keys are public and the authority's own key was thrown away. Made once, by:
/// ```sh
/// set -e
/// mkdir -p db && : > db/index && echo 1000 > db/serial
/// printf '[ca]\ndefault_ca=d\n[d]\ndatabase=db/index\nserial=db/serial\nnew_certs_dir=db\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n' > ca.cnf
/// issue() { # name, common name, extensions, end, signer options
///   openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out $1.key
///   openssl req -new -key $1.key -subj "/CN=$2" -out $1.csr
///   printf "$3" > $1.ext
///   openssl ca -batch -notext -config ca.cnf $5 -in $1.csr -out $1.pem -extfile $1.ext -startdate 20200101000000Z -enddate $4
/// }
/// leaf='basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\nsubjectAltName='
/// here='DNS:localhost,IP:127.0.0.1,IP:::1\n'
/// by='-cert ca.pem -keyfile ca.key'
/// issue ca 'segdl fixture CA' 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n' 21200101000000Z '-selfsign -keyfile ca.key'
/// issue good localhost "$leaf$here" 21200101000000Z "$by"
/// issue expired localhost "$leaf$here" 20210101000000Z "$by"
/// issue wrong wrong.example "${leaf}DNS:wrong.example\n" 21200101000000Z "$by"
/// issue self localhost "$leaf$here" 21200101000000Z '-selfsign -keyfile self.key'
/// ```
enum OriginCertificates {
    static let authority = """
        -----BEGIN CERTIFICATE-----
        MIIBajCCARCgAwIBAgICEAAwCgYIKoZIzj0EAwIwGzEZMBcGA1UEAwwQc2VnZGwg
        Zml4dHVyZSBDQTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowGzEZ
        MBcGA1UEAwwQc2VnZGwgZml4dHVyZSBDQTBZMBMGByqGSM49AgEGCCqGSM49AwEH
        A0IABM2fZs/Rj7RCJbJKASnIa93LESQhE9EroJPKb9vJ8bQCZ/TsYio5JW56SPw8
        CMk5eeIX8GZOaVbczlN6HzEDWA2jQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0P
        AQH/BAQDAgEGMB0GA1UdDgQWBBQrCtzmta3r2SNbkkOE18wxDbR49jAKBggqhkjO
        PQQDAgNIADBFAiEA8owrnIwua8R94NZ1pzXN9WadMhCUVe+tmwEheN2nbhICIHyr
        WkTIziBNG8Jn4uww/zNdUMafWKxdUgCab4djVYjf
        -----END CERTIFICATE-----
        """

    static let good = """
        -----BEGIN CERTIFICATE-----
        MIIBxjCCAWygAwIBAgICEAEwCgYIKoZIzj0EAwIwGzEZMBcGA1UEAwwQc2VnZGwg
        Zml4dHVyZSBDQTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFDES
        MBAGA1UEAwwJbG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEApWd
        LmDQIYb2UU+lNKQqlEMyhu0O2KX7ADZJtkQYw/kQnhRVcdX6MeQUeF/gafzNYc6f
        2vGde9UeZODu/rhxMKOBpDCBoTAMBgNVHRMBAf8EAjAAMA4GA1UdDwEB/wQEAwIH
        gDATBgNVHSUEDDAKBggrBgEFBQcDATAsBgNVHREEJTAjgglsb2NhbGhvc3SHBH8A
        AAGHEAAAAAAAAAAAAAAAAAAAAAEwHQYDVR0OBBYEFNbffneKwuXGC4vEbepERbds
        ZKNeMB8GA1UdIwQYMBaAFCsK3Oa1revZI1uSQ4TXzDENtHj2MAoGCCqGSM49BAMC
        A0gAMEUCIQDQA5AzAWkb3CdBJG0mW+D2gSHdskUfk3Cf98KqD+mq6wIgAvxlaOc8
        hmC7LnmFsmkCy+OOmbc3V72kvfpTIaYnDVk=
        -----END CERTIFICATE-----
        """

    static let goodKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgT0AshsWkQ+YqYruw
        D3XTer9IqlqdvlB7oB6lwK8mSgKhRANCAAQClZ0uYNAhhvZRT6U0pCqUQzKG7Q7Y
        pfsANkm2RBjD+RCeFFVx1fox5BR4X+Bp/M1hzp/a8Z171R5k4O7+uHEw
        -----END PRIVATE KEY-----
        """

    static let expired = """
        -----BEGIN CERTIFICATE-----
        MIIBxDCCAWqgAwIBAgICEAIwCgYIKoZIzj0EAwIwGzEZMBcGA1UEAwwQc2VnZGwg
        Zml4dHVyZSBDQTAeFw0yMDAxMDEwMDAwMDBaFw0yMTAxMDEwMDAwMDBaMBQxEjAQ
        BgNVBAMMCWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKzxBjcN
        pakAzuwIFaMBbrS+Zd/l1VrveShviquzkcuF1K1hfGbGFfcZ0RixfA0e7gPVWu0V
        7ZMaj/2OwSaya0SjgaQwgaEwDAYDVR0TAQH/BAIwADAOBgNVHQ8BAf8EBAMCB4Aw
        EwYDVR0lBAwwCgYIKwYBBQUHAwEwLAYDVR0RBCUwI4IJbG9jYWxob3N0hwR/AAAB
        hxAAAAAAAAAAAAAAAAAAAAABMB0GA1UdDgQWBBSksX8/VtnYCbtGIoEVEBrFNRgJ
        EDAfBgNVHSMEGDAWgBQrCtzmta3r2SNbkkOE18wxDbR49jAKBggqhkjOPQQDAgNI
        ADBFAiEAvgIImla9dMfwEmAwuJHAaEz2yi8MJrtyK09AiXYUm/oCIGG6zTB3jkM9
        HVVUNR7ZL2/lngZI6G3Mc+g9FSo99C7A
        -----END CERTIFICATE-----
        """

    static let expiredKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgWhkoOau5KNJKe/ev
        uZ2UXjO7Q4m/NpzGfHXysnfsOKWhRANCAASs8QY3DaWpAM7sCBWjAW60vmXf5dVa
        73kob4qrs5HLhdStYXxmxhX3GdEYsXwNHu4D1VrtFe2TGo/9jsEmsmtE
        -----END PRIVATE KEY-----
        """

    static let wrongHost = """
        -----BEGIN CERTIFICATE-----
        MIIBtTCCAVygAwIBAgICEAMwCgYIKoZIzj0EAwIwGzEZMBcGA1UEAwwQc2VnZGwg
        Zml4dHVyZSBDQTAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowGDEW
        MBQGA1UEAwwNd3JvbmcuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA
        BCWycbBZmx04vdLyDGmTop9H8TXD6wySRFE+VItajB9JwFV5JwFyU+FtLETjxqGm
        hUYNKR/0DHILXYSwSwJfITGjgZAwgY0wDAYDVR0TAQH/BAIwADAOBgNVHQ8BAf8E
        BAMCB4AwEwYDVR0lBAwwCgYIKwYBBQUHAwEwGAYDVR0RBBEwD4INd3JvbmcuZXhh
        bXBsZTAdBgNVHQ4EFgQUnVqLCp8gF9SHncqAp4YneVujRlMwHwYDVR0jBBgwFoAU
        Kwrc5rWt69kjW5JDhNfMMQ20ePYwCgYIKoZIzj0EAwIDRwAwRAIgWoHhdl4t8HjY
        W4TrB2I/RjBxymEaNdNjYrWLd41hsd4CIDF9FN25Em5s1auOxd4LxWmRs0cJnv0S
        R3E2rSkg7ScU
        -----END CERTIFICATE-----
        """

    static let wrongHostKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgcNsdsrR4tFEusf9A
        Q1IgCEpLCD7+PGXcHiz1PC1mEP6hRANCAAQlsnGwWZsdOL3S8gxpk6KfR/E1w+sM
        kkRRPlSLWowfScBVeScBclPhbSxE48ahpoVGDSkf9AxyC12EsEsCXyEx
        -----END PRIVATE KEY-----
        """

    static let selfSigned = """
        -----BEGIN CERTIFICATE-----
        MIIBnjCCAUSgAwIBAgICEAQwCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9jYWxo
        b3N0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAUMRIwEAYDVQQD
        DAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQJSQu8YcsBN0ek
        e7gXw12Cq01MAa6EI+YjKwzE33WQfwW5in8xbgJyvqQbLIWFkyTYrwLTHKN0dd+d
        d6b8CGx+o4GDMIGAMAwGA1UdEwEB/wQCMAAwDgYDVR0PAQH/BAQDAgeAMBMGA1Ud
        JQQMMAoGCCsGAQUFBwMBMCwGA1UdEQQlMCOCCWxvY2FsaG9zdIcEfwAAAYcQAAAA
        AAAAAAAAAAAAAAAAATAdBgNVHQ4EFgQUBiFQISrJLDkJgjjIeqJCKZVSg0QwCgYI
        KoZIzj0EAwIDSAAwRQIhAPKh2bZvry8cjnY78lMwkw4Q2Eqca92ZWeoX1SIE87QN
        AiBk/hEILMEuYcF34trIb4gips7pkh08K4T2vuj1olHJ2A==
        -----END CERTIFICATE-----
        """

    static let selfSignedKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgtgK9B+60y7DVK1Qr
        3em7vNEjuMbRAQWLcXBboLJHU9qhRANCAAQJSQu8YcsBN0eke7gXw12Cq01MAa6E
        I+YjKwzE33WQfwW5in8xbgJyvqQbLIWFkyTYrwLTHKN0dd+dd6b8CGx+
        -----END PRIVATE KEY-----
        """

    /// A self-signed certificate with a key of P-521: `openssl genpkey`, otherwise made as ``selfSigned``.
    static let p521 = """
        -----BEGIN CERTIFICATE-----
        MIICJjCCAYegAwIBAgICEAUwCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9jYWxo
        b3N0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAUMRIwEAYDVQQD
        DAlsb2NhbGhvc3QwgZswEAYHKoZIzj0CAQYFK4EEACMDgYYABAAaZsKR3PmhBDgd
        btUCi14LjzNt/j2A/kZ3MTNtdfvEDyfjC5tKSe2k1SFFgTOWtzsjDVmI+7cLRa6G
        v37cY5wlGwAOKhIxaXYma+GyKEtEQd64iU5LwWGD/l8GPSXm12TbihvrjQoUik6/
        gZt+//7zXWXC7n5GOmejHYMyJ8t3g9H7QqOBgzCBgDAMBgNVHRMBAf8EAjAAMA4G
        A1UdDwEB/wQEAwIHgDATBgNVHSUEDDAKBggrBgEFBQcDATAsBgNVHREEJTAjggls
        b2NhbGhvc3SHBH8AAAGHEAAAAAAAAAAAAAAAAAAAAAEwHQYDVR0OBBYEFCVwMupj
        dq//8YFvOIkagPsKltogMAoGCCqGSM49BAMCA4GMADCBiAJCAJmKrXWaq4uVVowj
        XrJf/0+RgYFeKj8995d7rggNdXE+JdMzZCFJmZyMbWKmlAb3sjBNp8c5Bv2afJk8
        9ZbqeMmvAkIBt7aWD3n8OCPdZrt0qS8uuv5LoN/PwdYc1HwQIdgqcp8pO51Vpv/D
        boQ6hDnGQE5SPH0f9eSI3n7RrEYRkd8ywmM=
        -----END CERTIFICATE-----
        """

    static let p521Key = """
        -----BEGIN PRIVATE KEY-----
        MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIAw7Iy2OScBGJAa4xt
        wKiA8KNPPXwXae8CruyWVQo0eu9sj24KTQfLWeCJViDBcc4x76A+zkUxGlpjrdMe
        XnSwo3mhgYkDgYYABAAaZsKR3PmhBDgdbtUCi14LjzNt/j2A/kZ3MTNtdfvEDyfj
        C5tKSe2k1SFFgTOWtzsjDVmI+7cLRa6Gv37cY5wlGwAOKhIxaXYma+GyKEtEQd64
        iU5LwWGD/l8GPSXm12TbihvrjQoUik6/gZt+//7zXWXC7n5GOmejHYMyJ8t3g9H7
        Qg==
        -----END PRIVATE KEY-----
        """

    /// A self-signed certificate with a key of Ed25519: `openssl genpkey`, otherwise made as ``selfSigned``.
    static let ed25519 = """
        -----BEGIN CERTIFICATE-----
        MIIBXjCCARCgAwIBAgICEAYwBQYDK2VwMBQxEjAQBgNVBAMMCWxvY2FsaG9zdDAg
        Fw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFDESMBAGA1UEAwwJbG9j
        YWxob3N0MCowBQYDK2VwAyEAiPZEO4Hc5UI0XtLvaZFtSwGml6QgomEpfPLcDW8K
        tk6jgYMwgYAwDAYDVR0TAQH/BAIwADAOBgNVHQ8BAf8EBAMCB4AwEwYDVR0lBAww
        CgYIKwYBBQUHAwEwLAYDVR0RBCUwI4IJbG9jYWxob3N0hwR/AAABhxAAAAAAAAAA
        AAAAAAAAAAABMB0GA1UdDgQWBBSR1jXUwwGvj3zgh11CgYIqMuhiNjAFBgMrZXAD
        QQAiaJHGuEglN3SlValSAeDhWiR3CNi94SO6iLcZPzH6xFAa4xtfwWyhgoGnJSrs
        SmeKYhP7RWM1AYfrpnW+n8wD
        -----END CERTIFICATE-----
        """

    static let ed25519Key = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIM+l0/A/e6OxcMliU+OXXjho8jrfOHGssks4z5PFDmDx
        -----END PRIVATE KEY-----
        """

    /// A self-signed client certificate: `openssl req -x509 -new -key client.key -subj "/CN=segdl fixture client" -days
    /// 36500 -addext keyUsage=critical,digitalSignature -addext extendedKeyUsage=clientAuth -out client.pem`.
    package static let client = """
        -----BEGIN CERTIFICATE-----
        MIIBujCCAWCgAwIBAgIUX9FEl08giX7U+KtCqnqpgWR+CEAwCgYIKoZIzj0EAwIw
        HzEdMBsGA1UEAwwUc2VnZGwgZml4dHVyZSBjbGllbnQwIBcNMjYxMTIyMDYzMTA4
        WhgPMjEyNjEwMjkwNjMxMDhaMB8xHTAbBgNVBAMMFHNlZ2RsIGZpeHR1cmUgY2xp
        ZW50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0IHp8+8sNfWYWTK0VSs1jtI8
        in7TfUOhmWhFNF97jNoi6kVRGMoXrsCD1d0G7STVLq8BCjLZ24mD+ukk94802aN4
        MHYwHQYDVR0OBBYEFAp4PBjSyeEz6zdidQibBshFEI53MB8GA1UdIwQYMBaAFAp4
        PBjSyeEz6zdidQibBshFEI53MA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQD
        AgeAMBMGA1UdJQQMMAoGCCsGAQUFBwMCMAoGCCqGSM49BAMCA0gAMEUCIQCHMaFV
        PX6DWZeCgDfL9vTWjRmOhx+GMtb8xQNo/haVXQIgSYiHOLbe+6EQ1OVPByzJ8gjD
        5siz+omaH8SKVjuNYmo=
        -----END CERTIFICATE-----

        """

    package static let clientKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgqC5haCADhGHp0Gvw
        Xtb6DDmN4+svcMM/r9VaupWZKVuhRANCAATQgenz7yw19ZhZMrRVKzWO0jyKftN9
        Q6GZaEU0X3uM2iLqRVEYyheuwIPV3QbtJNUurwEKMtnbiYP66ST3jzTZ
        -----END PRIVATE KEY-----

        """
}
