/// A command that changes the queue of the background service. Entries are given by their IDs.
enum ServiceCommand: Sendable, CustomStringConvertible {
    case add(ServiceFile, paused: Bool = false, first: Bool = false)
    case pause(String)
    case resume(String)
    /// Stop the download, and delete its partial file.
    case cancel(String)
    /// To the front of the queue, or to its end.
    case move(String, first: Bool)
    case priority(String, Double)

    /// The arguments of `segdl`.
    func arguments(_ bench: ServiceBench) -> [String] {
        switch self {
        case .add(let file, let isPaused, let isFirst):
            var arguments = ["add", "--no-autostart", "--quiet"]
            if isPaused { arguments.append("--paused") }
            if isFirst { arguments.append("--first") }
            return arguments + file.arguments(into: bench.files, from: bench.lab.origin)
        case .pause(let id): return ["pause", "--no-autostart", id]
        // It never starts the service.
        case .resume(let id): return ["resume", "--quiet", id]
        case .cancel(let id): return ["cancel", "--no-autostart", "--delete", id]
        case .move(let id, let isFirst): return ["move", "--no-autostart", id, isFirst ? "first" : "last"]
        case .priority(let id, let value): return ["priority", "--no-autostart", id, "\(value)"]
        }
    }

    var description: String {
        switch self {
        case .add(let file, let isPaused, let isFirst):
            "add \(file)\(isPaused ? " paused" : "")\(isFirst ? " first" : "")"
        case .pause(let id): "pause \(id)"
        case .resume(let id): "resume \(id)"
        case .cancel(let id): "cancel \(id)"
        case .move(let id, let isFirst): "move \(id) \(isFirst ? "first" : "last")"
        case .priority(let id, let value): "priority \(id) \(value)"
        }
    }
}
