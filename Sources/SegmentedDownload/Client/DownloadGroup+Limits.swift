public import SegmentedDownloadCore

extension DownloadGroup {
    /// What the downloads of the group may use together.
    public var limits: DownloadLimits { self.engine.currentLimits }

    /// Changes what the downloads of the group may use together, from now on.
    ///
    /// More is made use of at once. Less takes effect at once, too, in the way that loses least: a connection that is nearly
    /// done is waited for, for half a second at most; another is closed once what it is writing is written, and the rest of
    /// its segment is fetched later. A stream that cannot be gone on with is left to end by itself. Fewer `downloads` pause
    /// no file that has begun; no other begins until there is room.
    public func update(_ limits: DownloadLimits) {
        self.engine.update(limits)
    }
}

extension Download {
    /// Gives the download another share of connections and bytes beside others, and another turn if it waits for one.
    ///
    /// - Parameter priority: above 0, up to 1; what lies outside is taken for the nearest that is allowed.
    public func update(priority: Double) {
        self.engine.post(.adjust(.priority(self.job.id, priority)))
    }

    /// Changes how many connections fetch the file. Where there are too many, those with which least is lost are closed.
    public func update(segments: DownloadOptions.Segments) {
        self.engine.post(.adjust(.segments(self.job.id, segments.clamped)))
    }

    /// Limits how many bytes of this file come in a second; absent for no limit. Bytes of bodies count.
    public func update(bytesPerSecond: Int64?) {
        self.engine.post(.limit(self.job.id, bytesPerSecond: bytesPerSecond))
    }
}
