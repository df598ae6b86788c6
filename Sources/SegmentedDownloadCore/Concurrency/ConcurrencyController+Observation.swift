extension ConcurrencyController {
    /// What the scheduler measured, at a tick.
    package struct Observation: Hashable, Sendable {
        /// The number of bytes received so far.
        package var bytes: Int64
        /// The number of connections that receive a body.
        package var receiving: Int
        /// The number of bytes not written yet.
        package var bytesMissing: Int64
        /// Seconds that the path needs from a request to its first byte.
        package var requestCost: Double
        /// Seconds from a request to its first byte, with the time that the server needs.
        package var headTime: Double
        /// The average number of bytes that a connection on trial had received at the age at which the first one was
        /// joined by others. Absent while a quarter of them is younger.
        package var newcomer: Double?

        /// Whether trials are cheap, because a request takes little time.
        var isOnShortPath: Bool { self.requestCost < ConcurrencyController.shortRequestSeconds }

        package init(
            bytes: Int64, receiving: Int, bytesMissing: Int64 = .max, requestCost: Double = 0, headTime: Double = 0,
            newcomer: Double? = nil
        ) {
            self.newcomer = newcomer
            self.headTime = max(headTime, requestCost)
            self.bytes = bytes
            self.receiving = receiving
            self.bytesMissing = bytesMissing
            self.requestCost = requestCost
        }
    }
}
