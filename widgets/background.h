// Work off the GUI thread: runs a pure function on a pool and hands its value back to the GUI thread. A value is
// dropped if its context is gone; `Job` (job.h) also drops values that a later request has replaced.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <QCoreApplication>
#include <QObject>
#include <QPointer>
#include <QThreadPool>

#include "schedules/base/result.h"
#include "schedules/base/sanitizers.h"

#if defined(STAGEWRIGHT_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace stagewright {

// Qt's pool and event queue order writes before a hand-over and reads after it. Qt is not built with the
// thread sanitizer, so these announce it; elsewhere they do nothing.
inline char handOverPoint = 0;
inline void beforeHandOver()
{
#if defined(STAGEWRIGHT_THREAD_SANITIZER)
    __tsan_release(&handOverPoint);
#endif
}
inline void afterHandOver()
{
#if defined(STAGEWRIGHT_THREAD_SANITIZER)
    __tsan_acquire(&handOverPoint);
#endif
}

// The value of work(); where that can be an Error, memory that is not there is one.
template <typename Work>
auto valueOf(Work& work) -> decltype(work())
{
    if constexpr (std::is_convertible_v<tl::unexpected<Error>, decltype(work())>) {
        try {
            return work();
        } catch (const std::bad_alloc&) {
            return fail(ErrorCode::Failed, "there is not enough memory for it",
                        "close other runs or programs, or open a part of it");
        }
    } else {
        return work();
    }
}

// work() runs on the pool; then(value) on the GUI thread while `context` lives. Both must be copyable.
template <typename Work, typename Then>
void inBackground(QObject* context, Work work, Then then, QThreadPool* pool = QThreadPool::globalInstance())
{
    QPointer<QObject> alive(context);
    std::function<void()> task = [alive, work = std::move(work), then = std::move(then)]() mutable {
        afterHandOver();
        auto value = std::make_shared<decltype(work())>(valueOf(work));
        std::function<void()> answer = [alive, value = std::move(value), then = std::move(then)]() mutable {
            afterHandOver();
            if (alive) then(std::move(*value));
        };
        beforeHandOver();
        QMetaObject::invokeMethod(QCoreApplication::instance(), std::move(answer), Qt::QueuedConnection);
    };
    beforeHandOver();
    pool->start(std::move(task));
}

// Runs what() soon on the GUI thread while `context` lives; callable from any thread.
inline void onGuiThread(QObject* context, std::function<void()> what)
{
    std::function<void()> call = [what = std::move(what)] {
        afterHandOver();
        what();
    };
    beforeHandOver();
    QMetaObject::invokeMethod(context, std::move(call), Qt::QueuedConnection);
}

// Frees large objects on the pool.
template <typename T>
void releaseInBackground(std::shared_ptr<T> held, QThreadPool* pool)
{
    std::function<void()> task = [held = std::move(held)]() mutable {
        afterHandOver();
        held.reset();
    };
    beforeHandOver();
    pool->start(std::move(task));
}

} // namespace stagewright
