import Synchronization

/// A queue with one reader, which takes all that has come since it last looked.
final class Mailbox<Message: Sendable>: Sendable {
    private struct State {
        var messages: [Message] = []
        /// The reader, while it waits. Resumed with nothing if its task was cancelled.
        var reader: CheckedContinuation<[Message], Never>?
        var isCancelled = false
    }

    private let state = Mutex(State())

    func post(_ message: Message) {
        let reader = self.state.withLock { state -> CheckedContinuation<[Message], Never>? in
            guard let reader = state.reader.take() else {
                // A cancelled reader drops later messages.
                if !state.isCancelled { state.messages.append(message) }
                return nil
            }
            return reader
        }
        reader?.resume(returning: [message])
    }

    /// The messages since the last call, in the order they came; waits if there are none.
    ///
    /// - Returns: Nothing if the task was cancelled and no message is left.
    func next() async -> [Message] {
        await withTaskCancellationHandler {
            await withCheckedContinuation { reader in
                let messages = self.state.withLock { state -> [Message]? in
                    guard state.messages.isEmpty, !state.isCancelled else {
                        defer { state.messages = [] }
                        return state.messages
                    }
                    state.reader = reader
                    return nil
                }
                if let messages { reader.resume(returning: messages) }
            }
        } onCancel: {
            let reader = self.state.withLock { state in
                state.isCancelled = true
                return state.reader.take()
            }
            reader?.resume(returning: [])
        }
    }
}
