import Synchronization

/// Objects that are kept until the process exits: event loops, pools and HTTP clients must not be released before they
/// are shut down.
enum ProcessLifetime {
    private static let objects = Mutex<[any Sendable]>([])

    static func keep(_ object: any Sendable) { self.objects.withLock { $0.append(object) } }
}
