// ImportController: imports other tools' traces as runs of an open file. The dialog reads them; this stores the
// selected runs, all or none, shows the first, and offers the comparison with the plan. GUI thread only; files are
// written off it.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include <QObject>
#include <QPointer>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "widgets/import/import_dialog.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

// Stores these runs in `target`: creates the file or appends to it. Returns their ids; on an Error (also
// Cancelled) the target is unchanged.
Result<std::vector<qint64>> storeImported(const ImportReading& reading, const std::vector<std::size_t>& chosen,
                                          const QString& target, const Progress& progress = {});

class ImportController : public Feature, public TraceImporting {
    Q_OBJECT
public:
    explicit ImportController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    ~ImportController() override; // cancels storing

    // window modal, deleted when closed; an open dialog takes the traces
    ImportDialog* open(const QStringList& traces = {}, const QString& rulesFile = {});
    void openTraces(const QStringList& traces, const QString& rulesFile) override { open(traces, rulesFile); }
    ImportDialog* dialog() const { return m_dialog; }
    bool settled() const override { return !m_stop; } // nothing is being stored

private:
    struct Offer { // shown when the run is on screen
        RunRef ref;
        QString message;
        QString remedy;
        bool plan = false;
        bool mapper = false;
    };
    void store();
    void show(const QString& target, const std::vector<qint64>& ids, Offer offer);
    void makeOffer();

    QPointer<ImportDialog> m_dialog;
    std::optional<std::stop_source> m_stop; // stops storing
    std::optional<Offer> m_offer;
};

} // namespace stagewright
