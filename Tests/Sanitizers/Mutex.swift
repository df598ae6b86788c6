import Glibc

/// A lock that ThreadSanitizer sees, in place of `Synchronization.Mutex`; `scripts/sanitize thread` substitutes it.
///
/// A module's own type hides an imported one of the same name, so no other file changes.
///
/// Workaround: Swift's standard library is not instrumented, so that a thread that waits for its mutex seems to race
/// for the guarded value. No upstream issue yet; `Mutex` would have to report its locks to ThreadSanitizer.
struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    init(_ value: consuming sending Value) {
        self.lock = .allocate(capacity: 1)
        pthread_mutex_init(self.lock, nil)
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
    }

    deinit {
        pthread_mutex_destroy(self.lock)
        self.lock.deallocate()
        self.value.deinitialize(count: 1)
        self.value.deallocate()
    }

    borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        pthread_mutex_lock(self.lock)
        defer { pthread_mutex_unlock(self.lock) }
        return try body(&self.value.pointee)
    }
}
