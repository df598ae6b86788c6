#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The systemd units of a user's service: systemd.service(5), systemd.socket(5) and systemd.exec(5).
enum SystemdUnits {
    /// systemd listens, and starts the service with the first connection.
    static let socket = """
        [Unit]
        Description=Socket of segdl's background service

        [Socket]
        ListenStream=%t/segdl/socket
        SocketMode=0600
        DirectoryMode=0700

        [Install]
        WantedBy=sockets.target

        """

    /// - Parameters:
    ///   - command: The program and its arguments.
    ///   - directory: Relative paths begin there.
    static func service(_ command: [String], in directory: String) -> String {
        """
        [Unit]
        Description=Downloads of segdl
        Documentation=man:segdl(1)
        Requires=segdl.socket
        After=segdl.socket

        [Service]
        Type=notify
        ExecStart=\(command.map { Self.quoted($0) }.joined(separator: " "))
        ExecReload=/bin/kill -HUP $MAINPID
        WorkingDirectory=\(Self.path(directory))
        Restart=on-failure
        WatchdogSec=30
        TimeoutStopSec=5
        NoNewPrivileges=yes
        LockPersonality=yes
        MemoryDenyWriteExecute=yes
        RestrictRealtime=yes
        RestrictSUIDSGID=yes
        RestrictNamespaces=yes
        RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
        SystemCallArchitectures=native
        SystemCallFilter=@system-service

        [Install]
        WantedBy=default.target
        Also=segdl.socket

        """
    }

    /// A word of a command line in systemd.service(5)'s notation.
    private static func quoted(_ word: String) -> String {
        let escaped = word.reduce(into: "") { text, character in
            switch character {
            case "\\", "\"": text += "\\\(character)"
            case "%", "$": text += "\(character)\(character)"
            case "\n": text += "\\n"
            default: text.append(character)
            }
        }
        return "\"\(escaped)\""
    }

    /// A path that systemd does not expand.
    private static func path(_ path: String) -> String { path.replacing("%", with: "%%") }

    /// Writes the units into the user's directory.
    ///
    /// - Parameter arguments: The command line, from which `--install` is left out.
    /// - Returns: What was done and what remains to be done, in lines.
    /// - Throws: ``ServiceFailure``.
    static func install(_ arguments: [String], environment: [String: String]) throws(ServiceFailure) -> [String] {
        let home = environment["HOME"].map { $0 + "/.config" }
        guard let base = environment["XDG_CONFIG_HOME"].flatMap({ $0.hasPrefix("/") ? $0 : nil }) ?? home else {
            throw ServiceFailure("there is no place for the units", hint: "Set HOME or XDG_CONFIG_HOME")
        }
        let directory = base + "/systemd/user"
        let command = [ServiceLauncher.program] + arguments.filter { $0 != "--install" }
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            for (name, text) in [
                ("segdl.socket", Self.socket),
                ("segdl.service", Self.service(command, in: FileManager.default.currentDirectoryPath)),
            ] {
                try Data(text.utf8).write(to: URL(fileURLWithPath: "\(directory)/\(name)"), options: .atomic)
            }
        } catch {
            throw ServiceFailure("the units cannot be written to \(directory.shown): \(error)")
        }
        return [
            "wrote segdl.socket and segdl.service to \(directory.shown)",
            "to start it when it is first used: systemctl --user daemon-reload && systemctl --user enable --now segdl.socket",
            "to let it run without a login: loginctl enable-linger",
        ]
    }
}
