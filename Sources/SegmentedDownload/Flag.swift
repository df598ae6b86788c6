import Synchronization

/// A signal that is given once and stays given.
final class Flag: Sendable {
    private let value = Atomic(false)

    /// Whether it was raised by this call, not before.
    @discardableResult
    func raise() -> Bool {
        !self.value.exchange(true, ordering: .acquiringAndReleasing)
    }

    var isRaised: Bool {
        self.value.load(ordering: .acquiring)
    }
}
