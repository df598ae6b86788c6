import Mutation

/// The sites to compile in: all that compile, or a sample of them.
struct SiteSet {
    private let files: [SourceFile]
    private let sample: (choice: Sample, count: Int)?
    private var rejected: [Set<Int>]
    /// Lines and functions that had errors before.
    private var known: Set<String> = []

    /// The numbers of the sample.
    private var chosen: Set<Int> = []

    init(files: [SourceFile], sample: (choice: Sample, count: Int)?) {
        self.files = files
        self.sample = sample
        self.rejected = files.map { _ in [] }
        self.choose()
    }

    var rejectedKeys: Set<String> {
        Set(zip(self.files, self.rejected).flatMap { file, sites in sites.map { file.sites[$0].mutations[0].key } })
    }

    /// Rejects the sites that earlier builds rejected.
    mutating func reject(keys: Set<String>) {
        for (index, file) in self.files.enumerated() {
            self.rejected[index].formUnion(
                file.sites.indices.filter { keys.contains(file.sites[$0].mutations[0].key) })
        }
        self.choose()
    }

    private mutating func choose() {
        if self.sample != nil { self.chosen = Set(self.mutations.map(\.number)) }
    }

    var rejectedCount: Int { self.rejected.map(\.count).reduce(0, +) }

    /// The mutations that are compiled in.
    var mutations: [Mutation] {
        let all = zip(self.files, self.rejected).flatMap { file, rejected in
            file.sites.indices.filter { !rejected.contains($0) }.flatMap { file.sites[$0].mutations }
        }
        guard let sample = self.sample else { return all }
        return sample.choice.order(all, by: \.key).prefix(sample.count).sorted { $0.number < $1.number }
    }

    /// The sites of a file that are not compiled in.
    func left(out file: Int) -> Set<Int> {
        guard self.sample != nil else { return self.rejected[file] }
        let numbers = self.chosen
        return Set(
            self.files[file].sites.indices.filter { index in
                self.files[file].sites[index].mutations.allSatisfy { !numbers.contains($0.number) }
            })
    }

    /// Rejects the sites at errors: first the innermost site; if the error persists, all of the line, then of the
    /// function.
    ///
    /// Returns the number of rejected sites.
    mutating func reject(_ errors: [Build.Failure], in tree: Tree) -> Int {
        let before = self.rejectedCount
        var (fresh, added): (Set<String>, [(Int, Set<Int>)]) = ([], [])
        for error in errors {
            guard let index = self.files.firstIndex(where: { $0.path == error.path }) else { continue }
            let file = self.files[index]
            let places = file.mutated(without: self.left(out: index)).places
            let around = places.filter { $0.value.contains(error.place) }
            let innermost = around.max { $0.value.lowerBound < $1.value.lowerBound }
            let line = "\(error.path):\(error.place.line)"
            let onLine = places.filter {
                $0.value.lowerBound.line <= error.place.line && error.place.line <= $0.value.upperBound.line
            }
            let function = places.filter { $0.value.lowerBound.line <= error.place.line }
                .max { $0.value.lowerBound < $1.value.lowerBound }
                .map { file.sites[$0.key].mutations[0].function }
            fresh.insert(line)
            if let innermost, !self.known.contains(line) {
                added.append((index, [innermost.key]))
            } else if !onLine.isEmpty {
                added.append((index, Set(onLine.keys)))
            } else if let function {
                let same = places.keys.filter { file.sites[$0].mutations[0].function == function }
                added.append((index, Set(same)))
            }
        }
        for (index, sites) in added { self.rejected[index].formUnion(sites) }
        self.known.formUnion(fresh)
        self.choose()
        return self.rejectedCount - before
    }
}
