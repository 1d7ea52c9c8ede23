// ExchangeController: writes the view's run for other tools in any format of traces/formats.def, with its options, and
// the edited order in those that hold an order. What a format can't express is reported before a file name is
// requested. One export at a time, written off the GUI thread; long ones show their progress in the banner, which can
// cancel them. GUI thread only.
#pragma once

#include <functional>
#include <memory>

#include <QElapsedTimer>
#include <QObject>
#include <QPointer>
#include <QTimer>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "traces/format/format_registry.h"
#include "widgets/job.h"

namespace stagewright {

class FormatDialog;

class ExchangeController : public Feature, public OrderExporting {
    Q_OBJECT
public:
    explicit ExchangeController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();

    void exportOrder() override;
    FormatDialog* openDialog(); // not modal; deleted when closed; null if nothing is shown
    // A file or a folder, as the format has it; all or nothing. The window reports what was written, or why not.
    void write(const FormatInfo& format, const QString& path, const TextPairs& options = {});
    void cancel();

private:
    struct Asked; // what is written, kept for the worker
    struct Cell;  // progress, written by the worker
    std::shared_ptr<Asked> asked(const FormatInfo& format, const TextPairs& options) const;
    // Whether the format can express what is shown; then a place is asked for, and it is written. `refused` gets why
    // not.
    void ask(const FormatInfo& format, const TextPairs& options, std::function<void(const Error&)> refused,
             std::function<void()> accepted);
    void askPlace(const FormatInfo& format, const TextPairs& options);
    void poll();
    void ended(const Asked& asked, const Result<WrittenFile>& written);

    QPointer<FormatDialog> m_dialog;
    std::shared_ptr<Cell> m_cell;
    QElapsedTimer m_since;
    QTimer m_poll;
    QString m_path;
    QString m_told; // the progress text in the banner; empty: none
    Job m_checking;
    Job m_writing;
};

} // namespace stagewright
