import NIOCore

extension Reception {
    /// The first bytes of the body, as far as they arrive within a time. After it the response is given up.
    func beginning(lengthMax: Int, within time: Duration) async -> [UInt8] {
        await withTaskGroup(of: [UInt8].self) { group in
            group.addTask {
                var bytes: [UInt8] = []
                while bytes.count < lengthMax, let chunk = try? await self.next() {
                    bytes += chunk.readableBytesView.prefix(lengthMax - bytes.count)
                }
                return bytes
            }
            group.addTask {
                try? await Task.sleep(for: time)
                return []
            }
            var bytes: [UInt8] = []
            for await read in group {
                bytes += read
                // The first to end ends the other one.
                group.cancelAll()
            }
            return bytes
        }
    }
}
