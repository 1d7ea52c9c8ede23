// FrameWorker: paints one exact frame at a time on its own thread; a newer request replaces a waiting one.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include <QImage>

#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

class FrameWorker {
public:
    struct Request {
        TimelineScene scene;
        const Theme* theme = nullptr;
        double ratio = 1;
        std::uint64_t generation = 0;
    };
    // `done` is called on the worker's thread.
    explicit FrameWorker(std::function<void(QImage, std::uint64_t)> done);
    ~FrameWorker(); // waits for a frame in progress
    void paint(Request request);

private:
    void run();

    std::function<void(QImage, std::uint64_t)> m_done;
    std::mutex m_mutex;
    std::condition_variable m_wake;
    std::optional<Request> m_next;
    bool m_stop = false;
    std::thread m_thread;
};

// A frame as an image of device pixels.
QImage frameImage(const TimelineScene& scene, const Theme& theme, double ratio, Detail detail);

} // namespace stagewright
