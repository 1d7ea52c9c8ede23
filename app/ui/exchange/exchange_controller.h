// ExchangeController: writes the view's run for other tools: traces for Perfetto and Chrome, PyTorch profiler traces, schedules for
// PyTorch and TorchTitan, schedule CSV. What a tool can't express is reported before a file name is requested. One export at a time,
// written off the GUI thread; long ones show their progress in the banner, which can cancel them. GUI thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

#include "app/ui/workspace/feature.h"
#include "schedules/base/result.h"

namespace stagewright {

class ExchangeController : public Feature {
    Q_OBJECT
public:
    enum class Kind {
        Perfetto,
        Chrome,
        Kineto,
        Csv,
        PyTorch,
        PyTorchMessages,
        TorchTitan,
    };

    explicit ExchangeController(Workspace& workspace);
    ~ExchangeController() override; // cancels

    // A file, or a folder for Kineto and TorchTitan; all or nothing. The window reports what was written, or why not.
    void write(Kind kind, const QString& path);
    void cancel();
    bool settled() const override { return !m_stop; }

private:
    struct Written {
        QString path;
        QString sentence; // "112 spans, 80 flows, 96 counter samples"
    };
    struct Cell; // progress, written by the worker
    void askTrace();
    void askKineto();
    void askSchedule(Kind kind); // PyTorch covers both of its forms
    void askPlace(const QString& title, const QString& suggested, const QString& filters, std::function<void(const QString& path, int filter)> then);
    void poll();
    void ended(const Result<Written>& written, bool edited);

    std::optional<std::stop_source> m_stop;
    std::shared_ptr<Cell> m_cell;
    QElapsedTimer m_since;
    QTimer m_poll;
    QString m_path;
    QString m_told; // the progress text in the banner; empty: none
};

} // namespace stagewright
