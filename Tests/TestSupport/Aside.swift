import Glibc

/// Computes something on a thread of its own, which waits for all others: what takes seconds without a pause would hold one of the few
/// threads that all other tests' tasks share, and they would be late for what they look at.
package func aside<Answer: Sendable>(_ body: @escaping @Sendable () throws -> Answer) async throws -> Answer {
    let result = await withCheckedContinuation {
        (continuation: CheckedContinuation<Result<Answer, any Error>, Never>) in
        let work = Unmanaged.passRetained(Work { continuation.resume(returning: Result { try body() }) })
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        // As much as a main thread has.
        pthread_attr_setstacksize(&attributes, 8 << 20)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let error = pthread_create(
            &thread, &attributes,
            { pointer in
                guard let pointer else { return nil }
                // On Linux this is about the calling thread only, see setpriority(2).
                _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
                Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue().run()
                return nil
            }, work.toOpaque())
        pthread_attr_destroy(&attributes)
        precondition(error == 0, "no thread: \(error)")
    }
    return try result.get()
}

private final class Work: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
        self.run = run
    }
}
