import Synchronization

/// A flag that can be set once and stays set.
package final class Latch: Sendable {
    private let value = Atomic(false)

    package init() {}

    /// Sets the flag.
    ///
    /// - Returns: Whether this call set it.
    @discardableResult
    package func raise() -> Bool {
        !self.value.exchange(true, ordering: .acquiringAndReleasing)
    }

    package var isRaised: Bool {
        self.value.load(ordering: .acquiring)
    }
}
