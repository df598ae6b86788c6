import Synchronization

/// A signal that is given once and stays given.
package final class Latch: Sendable {
    private let value = Atomic(false)

    package init() {}

    /// Whether it was raised by this call, not before.
    @discardableResult
    package func raise() -> Bool {
        !self.value.exchange(true, ordering: .acquiringAndReleasing)
    }

    package var isRaised: Bool {
        self.value.load(ordering: .acquiring)
    }
}
