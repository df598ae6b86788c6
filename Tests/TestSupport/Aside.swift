import Glibc

/// Computes a value on a thread of its own at the lowest priority. A computation of seconds would occupy one of the few
/// threads that the tasks of all other tests share, and delay what they measure.
package func aside<Answer: Sendable>(_ body: @escaping @Sendable () throws -> Answer) async throws -> Answer {
    let result = await withCheckedContinuation {
        (continuation: CheckedContinuation<Result<Answer, any Error>, Never>) in
        let work = Unmanaged.passRetained(Work { continuation.resume(returning: Result { try body() }) })
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        // The size of a main thread's stack.
        pthread_attr_setstacksize(&attributes, 8 << 20)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let error = pthread_create(
            &thread, &attributes,
            { pointer in
                guard let pointer else { return nil }
                // On Linux this applies to the calling thread only, see setpriority(2).
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
