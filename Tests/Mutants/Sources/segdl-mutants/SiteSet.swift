import Mutation

/// The sites to compile in: all that compile, or a choice of them.
struct SiteSet {
    enum Choice {
        case all
        case sample(Sample, count: Int)
        /// Those with these keys.
        case listed(Set<String>)
    }

    private let files: [SourceFile]
    private let choice: Choice
    private var rejected: [Set<Int>]
    /// Lines and functions that had errors before.
    private var known: Set<String> = []

    /// The numbers of the choice; nil if it is all.
    private var chosen: Set<Int>?

    init(files: [SourceFile], choice: Choice) {
        self.files = files
        self.choice = choice
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
        if case .all = self.choice { return }
        self.chosen = Set(self.mutations.map(\.number))
    }

    var rejectedCount: Int { self.rejected.map(\.count).reduce(0, +) }

    /// The mutations that are compiled in.
    var mutations: [Mutation] {
        let all = zip(self.files, self.rejected).flatMap { file, rejected in
            file.sites.indices.filter { !rejected.contains($0) }.flatMap { file.sites[$0].mutations }
        }
        switch self.choice {
        case .all: return all
        case .sample(let sample, let count):
            return sample.order(all, by: \.key).prefix(count).sorted { $0.number < $1.number }
        case .listed(let keys): return all.filter { keys.contains($0.key) }
        }
    }

    /// The sites of a file that are not compiled in.
    func left(out file: Int) -> Set<Int> {
        guard let numbers = self.chosen else { return self.rejected[file] }
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
