import SegmentedDownloadCore

/// The disk: its steps take time, and may fail.
extension MachineWorld {
    mutating func later(_ index: Int, _ event: MachineEvent, snapshot: [ModelDisk.Run] = []) {
        let delay = Duration.milliseconds(Int.random(in: 0...400, using: &self.generator))
        self.steps.append(
            DiskStep(
                id: self.downloads[index].id, at: self.now + delay, event: event, snapshot: snapshot,
                generation: self.downloads[index].disk.generation))
    }

    mutating func writeManifest(_ revision: Revision?, _ index: Int) {
        guard !self.downloads[index].isWritingManifest else {
            self.downloads[index].manifestStepsWaiting.append(revision)
            return
        }
        self.downloads[index].isWritingManifest = true
        self.perform(revision, index)
    }

    mutating func perform(_ revision: Revision?, _ index: Int) {
        guard !self.chance(self.faultiness / 4) else {
            self.later(index, .checkpointFailed(DownloadError(.file, "the data could not be synced")))
            return
        }
        if let revision {
            self.downloads[index].disk.perform(revision, url: self.downloads[index].url)
            self.later(index, .revised)
            return
        }
        self.later(index, .checkpointed(bytes: 0), snapshot: self.downloads[index].disk.runs)
    }

    mutating func post(_ step: DiskStep) {
        let index = step.id.rawValue
        switch step.event {
        case .checkpointed:
            let bytes = self.downloads[index].disk.makeDurable(step.snapshot, generation: step.generation)
            self.inbox.append(.download(step.id, .checkpointed(bytes: bytes)))
            return
        case .checkpointFailed: self.downloads[index].disk.forgetVolatile()
        case .placed: self.downloads[index].disk.finish()
        default: break
        }
        self.inbox.append(.download(step.id, step.event))
    }

    mutating func beginNextManifestStep(_ event: MachineEvent, _ index: Int) {
        switch event {
        case .checkpointed, .checkpointFailed, .revised:
            guard !self.downloads[index].manifestStepsWaiting.isEmpty else {
                self.downloads[index].isWritingManifest = false
                return
            }
            self.perform(self.downloads[index].manifestStepsWaiting.removeFirst(), index)
        default: break
        }
    }

    mutating func place(_ index: Int, length: Int64) {
        let download = self.downloads[index]
        if let step = self.steps.first(where: { $0.id == download.id }) {
            self.violate("\(download.id) is placed before its disk answered \(step.event)")
        }
        if download.hasFailedWrite { self.violate("\(download.id) is placed, although a write failed") }
        if let flaw = download.disk.flaw(length: length, lengths: download.origin.lengths) {
            self.violate("\(download.id) is placed, but \(flaw)")
        }
        self.checkPlaced(index)
        // One stream that fetches everything does not report the other segments as done; it always reports the last
        // byte.
        if let told = download.told, length > 0, !told.contains(where: { $0.upperBound == length }) {
            self.violate("\(download.id) is placed, but no segment that ends at \(length) was reported as done")
        }
        self.later(
            index,
            self.chance(self.faultiness)
                ? .storageFailed(DownloadError(.file, "no rename")) : .placed(.simulated(length: length)))
    }
}
