// Work off the GUI thread: a pure function on a pool, its value handed back to the GUI thread. A late value is dropped
// where the context is gone; callers drop values of an older generation themselves.
#pragma once

#include <memory>
#include <utility>

#include <QCoreApplication>
#include <QObject>
#include <QPointer>
#include <QThreadPool>

namespace stagewright {

// work() runs on the pool; then(value) on the GUI thread while `context` lives. Both must be copyable.
template <typename Work, typename Then>
void inBackground(QObject* context, Work work, Then then, QThreadPool* pool = QThreadPool::globalInstance())
{
    QPointer<QObject> alive(context);
    pool->start([alive, work = std::move(work), then = std::move(then)]() mutable {
        auto value = std::make_shared<decltype(work())>(work());
        QMetaObject::invokeMethod(
            QCoreApplication::instance(),
            [alive, value, then = std::move(then)]() mutable {
                if (alive) then(std::move(*value));
            },
            Qt::QueuedConnection);
    });
}

} // namespace stagewright
