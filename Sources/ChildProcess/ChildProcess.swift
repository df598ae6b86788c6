import CLinux
import Dispatch
import Synchronization

#if canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A child process in its own process group, which inherits only the descriptors it is given.
///
/// It uses `posix_spawn(3)` and a thread in `waitid(2)`. Foundation's `Process` reads beyond its buffer if some
/// thousand descriptors are open (swift-corelibs-foundation#5472), and changes the parent's working directory.
/// swift-subprocess 1.0 waits forever if no descriptor is left for `pidfd_open`.
package final class ChildProcess: Sendable {
    package enum Ending: Hashable, Sendable {
        case exited(Int32)
        case signaled(Int32)
    }

    /// The reason why a process could not be started.
    package struct SpawnFailure: Error, CustomStringConvertible {
        package let command: String
        package let errno: Int32

        package var description: String { "\(self.command): \(String(cString: strerror(self.errno)))" }
    }

    package let identifier: Int32
    private let isReaped = Mutex(false)

    /// Starts a process.
    ///
    /// - Parameters:
    ///   - command: The program and its arguments. A program without a slash is searched in `PATH`.
    ///   - directory: The working directory; `nil` for the parent's.
    ///   - environment: Changes to the parent's environment. A `nil` value removes a variable.
    ///   - input: The descriptor for standard input; `nil` for `/dev/null`.
    ///   - output: The descriptor for standard output.
    ///   - errors: The descriptor for standard error.
    ///   - inNewSession: Whether the process leaves this session, so that it has no controlling terminal.
    /// - Throws: ``SpawnFailure``.
    package init(
        _ command: [String], in directory: String? = nil, environment: [String: String?] = [:], input: Int32? = nil,
        output: Int32, errors: Int32, inNewSession: Bool = false
    ) throws(SpawnFailure) {
        Self.keepEndings
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
        // An inherited socket would stay open after the parent has closed it.
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)
        if let directory { posix_spawn_file_actions_addchdir_np(&actions, directory) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Reset, so that signals which the parent ignores or blocks, or was started with ignored, reach the child.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        // The leader of a new session also leads a new process group.
        let group = inNewSession ? CInt(SEGDL_SPAWN_SETSID) : CInt(POSIX_SPAWN_SETPGROUP)
        posix_spawnattr_setflags(&attributes, Int16(group | CInt(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)))
        let arguments = command.map { strdup($0) } + [nil]
        let values = Self.environment(environment).map { strdup($0) } + [nil]
        defer { for pointer in arguments + values { free(pointer) } }
        var process: pid_t = 0
        let number = posix_spawnp(&process, command[0], &actions, &attributes, arguments, values)
        guard number == 0 else { throw SpawnFailure(command: command[0], errno: number) }
        self.identifier = process
    }

    /// Makes the kernel keep the endings of children until they are waited for.
    ///
    /// A process that was started with SIGCHLD ignored loses them: its children are reaped at once, and `waitid` fails.
    private static let keepEndings: Void = {
        var action = sigaction()  // The default action, without flags.
        sigaction(SIGCHLD, &action, nil)
    }()

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

    /// Whether the process has ended and was reaped.
    package var hasEnded: Bool { self.isReaped.withLock { $0 } }

    /// Sends a signal, unless the process has ended.
    ///
    /// - Parameter toGroup: Whether the signal is sent to the whole process group.
    package func signal(_ number: Int32, toGroup: Bool = false) {
        self.isReaped.withLock { isReaped in
            if !isReaped { _ = kill(toGroup ? -self.identifier : self.identifier, number) }
        }
    }

    /// Waits for the process to end. Call it once. It does not respond to cancellation.
    package func wait() async -> Ending {
        await withCheckedContinuation { (continuation: CheckedContinuation<Ending, Never>) in
            DispatchQueue.global().async { continuation.resume(returning: self.reap()) }
        }
    }

    private func reap() -> Ending {
        var information = siginfo_t()
        // `WNOWAIT` keeps the process identifier reserved; it is reaped under the lock, so that `signal` cannot reach a
        // process that reuses the identifier.
        while waitid(P_PID, id_t(self.identifier), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        return self.isReaped.withLock { isReaped in
            var status: Int32 = 0
            var reaped = waitpid(self.identifier, &status, 0)
            while reaped < 0, errno == EINTR { reaped = waitpid(self.identifier, &status, 0) }
            precondition(reaped == self.identifier, "only this type waits for its children, and SIGCHLD is not ignored")
            isReaped = true
            let signal = status & 0x7f
            return signal == 0 ? .exited((status >> 8) & 0xff) : .signaled(signal)
        }
    }
}
