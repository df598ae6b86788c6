import SegmentedDownload

extension Download {
    /// The result, as ``result()``. If the file does not have its digest, what was fetched of it is deleted.
    ///
    /// For programs that start segdl and repeat a request that failed: they cannot delete the partial file, and bytes that were
    /// corrupt once would fail each time.
    func resultOrNothing() async throws(DownloadError) -> DownloadResult {
        do {
            return try await self.result()
        } catch {
            if error.code == .integrity { await self.cancel(keepingPartial: false) }
            throw error
        }
    }
}
