public import SegmentedDownloadCore

extension DownloadGroup {
    /// The limits that the group's downloads share.
    public var limits: DownloadLimits { self.engine.currentLimits }

    /// Changes the limits that the group's downloads share, effective immediately.
    ///
    /// When the number of connections is lowered, the engine closes those whose loss costs least. It waits at most half
    /// a second for a connection that is nearly done. Others finish the write under way, and the rest of their segments
    /// is fetched later. A stream that cannot be resumed runs to its end. Fewer `downloads` do not pause a download
    /// that has started; no other starts until there is room.
    public func update(_ limits: DownloadLimits) {
        self.engine.update(limits)
    }
}

extension Download {
    /// Changes the download's share of connections and bandwidth, and its place in the queue if it has not started.
    ///
    /// - Parameter priority: Above 0, up to 1. Values outside are clamped.
    public func update(priority: Double) {
        self.engine.post(.adjust(.priority(self.job.id, priority)))
    }

    /// Changes how many connections fetch the file. Surplus connections are closed, those whose loss costs least first.
    public func update(segments: DownloadOptions.Segments) {
        self.engine.post(.adjust(.segments(self.job.id, segments.clamped)))
    }

    /// Limits the rate of this file in bytes of message bodies per second; `nil` removes the limit.
    public func update(bytesPerSecond: Int64?) {
        self.engine.post(.limit(self.job.id, bytesPerSecond: bytesPerSecond))
    }
}
