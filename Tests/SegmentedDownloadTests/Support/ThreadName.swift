import Foundation

/// The name of the thread that calls it. NIO names those of its pools and loops.
func threadName() -> String {
    (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? ""
}
