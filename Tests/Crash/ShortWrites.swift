import Foundation
import SegmentedDownloadCore
import TestSupport

/// Short writes, as any system call may return, by a library loaded before the C library.
struct ShortWrites {
    let options: LabOptions
    let count: Int

    /// Cuts three writes in four to a random length, one in sixteen to a byte; at its end the library adds their number
    /// to a file.
    private static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdatomic.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/types.h>

        static atomic_ullong state;
        static atomic_int cut;

        __attribute__((constructor)) static void begin(void) { state = strtoull(getenv("SHORT_WRITES_SEED"), 0, 10); }
        __attribute__((destructor)) static void end(void) {
            FILE *file = fopen(getenv("SHORT_WRITES_COUNT"), "w");
            if (file) { fprintf(file, "%d", cut); fclose(file); }
        }
        static size_t part(size_t count) {
            unsigned long long mixed = atomic_fetch_add(&state, 0x9E3779B97F4A7C15ull);
            mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ull;
            mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBull;
            mixed ^= mixed >> 31;
            if (count < 2 || mixed % 4 == 0) return count;
            atomic_fetch_add(&cut, 1);
            return mixed % 16 == 1 ? 1 : 1 + (mixed >> 8) % (count - 1);
        }
        ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
            static ssize_t (*next)(int, const void *, size_t, off_t);
            if (!next) next = dlsym(RTLD_NEXT, "pwrite");
            return next(descriptor, bytes, part(count), offset);
        }
        ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t offset) {
            return pwrite(descriptor, bytes, count, offset);
        }
        """

    private static let scenarios = ["fresh", "fresh-small", "fresh-tiny", "paused", "no-length", "overwrite"]

    func run(_ lab: Lab, _ report: Report) async throws {
        guard self.count > 0 else { return }
        guard Lab.program("cc") != nil else {
            return print("errors: skipping short writes: no C compiler is installed")
        }
        let library = "\(lab.root)/short-writes.so"
        try Self.source.write(toFile: "\(lab.root)/short-writes.c", atomically: false, encoding: .utf8)
        let build = try await Child.run(
            ["cc", "-O1", "-shared", "-fPIC", "-o", library, "\(lab.root)/short-writes.c", "-ldl"],
            log: "\(lab.root)/cc")
        guard build.status == 0 else { throw Bench.SetupFailure("cc ended with \(build)") }
        let scenarios = Scenario.all.filter { Self.scenarios.contains($0.name) }
        let seeds = self.options.slice.of(Array(0..<self.count))
        try await forEach(seeds, atOnce: self.options.jobs) { index in
            try await lab.withBench("short-\(index)") { bench in
                let scenario = scenarios[index % scenarios.count]
                try await self.write(scenario, index, bench, library: library, report)
            }
        }
    }

    private func write(_ scenario: Scenario, _ index: Int, _ bench: Bench, library: String, _ report: Report)
        async throws
    {
        let seed = self.options.seed &* 1_000_003 &+ UInt64(index)
        let tally = "\(bench.folder)/tally"
        try await bench.begin(scenario)
        let outcome = try await bench.run(
            bench.command(scenario),
            environment: ["LD_PRELOAD": library, "SHORT_WRITES_SEED": "\(seed)", "SHORT_WRITES_COUNT": tally])
        let cut = Int(String(decoding: FileManager.default.contents(atPath: tally) ?? Data(), as: UTF8.self)) ?? 0
        report.count("short writes", cut)
        let destination = bench.destination(scenario)
        // A short file is one write, which may be left whole.
        let isCut = cut > 0 || scenario.isShort
        if outcome.status != 0 || destination != .right || !isCut {
            report.violation(
                "\(scenario) with \(cut) short writes ended with \(outcome), the destination holds \(destination)",
                replay: "segdl-crash errors --limit 0 --seed \(self.options.seed) (short writes \(index))")
        }
    }
}
