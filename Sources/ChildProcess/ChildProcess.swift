import CLinux
import Dispatch
import Synchronization

#if canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A process in a group of its own, with none of our descriptors but those it is given.
///
/// `posix_spawn(3)` and a thread in `waitid(2)`: Foundation's `Process` reads behind its buffer where some thousand descriptors are
/// open (swift-corelibs-foundation#5472) and changes our own directory, and swift-subprocess 1.0 waits for ever where none is left for
/// its `pidfd_open`.
package final class ChildProcess: Sendable {
    package enum Ending: Hashable, Sendable {
        case exited(Int32)
        case signaled(Int32)
    }

    /// Why it could not be started.
    package struct SpawnFailure: Error, CustomStringConvertible {
        package let command: String
        package let errno: Int32

        package var description: String { "\(self.command): \(String(cString: strerror(self.errno)))" }
    }

    package let identifier: Int32
    private let isReaped = Mutex(false)

    /// Starts it.
    ///
    /// - Parameters:
    ///   - command: the program, looked up in `PATH` if it has no slash, and its arguments.
    ///   - environment: what it has besides ours, or instead; what is nil it has not.
    ///   - input: its standard input, absent for none.
    package init(
        _ command: [String], in directory: String? = nil, environment: [String: String?] = [:], input: Int32? = nil,
        output: Int32, errors: Int32
    ) throws(SpawnFailure) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
        // A socket of ours that it kept open would not be closed when we close it.
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)
        if let directory { posix_spawn_file_actions_addchdir_np(&actions, directory) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // What we ignore, or a shell that put us in the background, is not to be ignored there.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        let arguments = command.map { strdup($0) } + [nil]
        let values = Self.environment(environment).map { strdup($0) } + [nil]
        defer { for pointer in arguments + values { free(pointer) } }
        var process: pid_t = 0
        let number = posix_spawnp(&process, command[0], &actions, &attributes, arguments, values)
        guard number == 0 else { throw SpawnFailure(command: command[0], errno: number) }
        self.identifier = process
    }

    private static func environment(_ changes: [String: String?]) -> [String] {
        var values: [String] = []
        var pointer = environ
        while let entry = pointer.pointee {
            let text = String(cString: entry)
            if !changes.keys.contains(String(text.prefix { $0 != "=" })) { values.append(text) }
            pointer += 1
        }
        for (name, value) in changes {
            if let value { values.append("\(name)=\(value)") }
        }
        return values
    }

    /// Whether it has ended and been waited for.
    package var hasEnded: Bool { self.isReaped.withLock { $0 } }

    /// Sends a signal, unless it has ended.
    ///
    /// - Parameter toGroup: whether those it has started get it, too.
    package func signal(_ number: Int32, toGroup: Bool = false) {
        self.isReaped.withLock { isReaped in
            if !isReaped { _ = kill(toGroup ? -self.identifier : self.identifier, number) }
        }
    }

    /// Waits for its end, once; a cancellation changes nothing.
    package func wait() async -> Ending {
        await withCheckedContinuation { (continuation: CheckedContinuation<Ending, Never>) in
            DispatchQueue.global().async { continuation.resume(returning: self.reap()) }
        }
    }

    private func reap() -> Ending {
        var information = siginfo_t()
        // Seen first and reaped under the lock, so that nobody signals a process that has taken over the number.
        while waitid(P_PID, id_t(self.identifier), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        return self.isReaped.withLock { isReaped in
            var status: Int32 = 0
            while waitpid(self.identifier, &status, 0) < 0, errno == EINTR {}
            isReaped = true
            let signal = status & 0x7f
            return signal == 0 ? .exited((status >> 8) & 0xff) : .signaled(signal)
        }
    }
}
