#include "widgets/timeline/frame_worker.h"

#include <cmath>

namespace stagewright {

QImage frameImage(const TimelineScene& scene, const Theme& theme, double ratio, Detail detail)
{
    QImage image(std::max(1, static_cast<int>(std::ceil(scene.size.width() * ratio))),
                 std::max(1, static_cast<int>(std::ceil(scene.size.height() * ratio))), QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    image.fill(theme.canvas);
    QPainter painter(&image);
    paintFrame(painter, scene, theme, detail, &image);
    return image;
}

FrameWorker::FrameWorker(std::function<void(QImage, std::uint64_t)> done)
    : m_done(std::move(done)), m_thread([this] { run(); })
{
}

FrameWorker::~FrameWorker()
{
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_wake.notify_one();
    m_thread.join();
}

void FrameWorker::paint(Request request)
{
    {
        const std::lock_guard lock(m_mutex);
        m_next = std::move(request);
    }
    m_wake.notify_one();
}

void FrameWorker::run()
{
    for (;;) {
        std::optional<Request> request;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait(lock, [this] { return m_stop || m_next; });
            if (m_stop) return;
            request.swap(m_next);
        }
        m_done(frameImage(request->scene, *request->theme, request->ratio, Detail::Exact), request->generation);
    }
}

} // namespace stagewright
