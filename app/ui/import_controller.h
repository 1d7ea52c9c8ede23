// ImportController: traces of other tools become runs of a file that is open here. The dialog reads them; this stores what was
// chosen, whole or not at all, shows it, and offers the comparison with the plan. GUI thread only; files are written off it.
#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include <QObject>
#include <QPointer>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "widgets/import/import_dialog.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class MainWindow;

// Stores these runs in `target`: a new file, or added to those of one that is there. Gives their ids; with an Error (also
// Cancelled) the target is as it was.
Result<std::vector<qint64>> storeImported(const ImportReading& reading, const std::vector<std::size_t>& chosen, const QString& target, const Progress& progress = {});

class ImportController : public QObject {
    Q_OBJECT
public:
    explicit ImportController(MainWindow& window);
    ~ImportController() override; // cancels what is being stored

    ImportDialog* open(const QStringList& traces = {}); // window modal, deleted when closed; one that is open takes the traces
    ImportDialog* dialog() const { return m_dialog; }
    bool settled() const { return !m_stop; } // nothing is being stored

private:
    struct Offer { // made when the run is on screen
        RunRef ref;
        QString message;
        QString remedy;
        bool plan = false;
    };
    void store();
    void show(const QString& target, const std::vector<qint64>& ids, Offer offer);
    void makeOffer();

    MainWindow& m_window;
    QPointer<ImportDialog> m_dialog;
    std::optional<std::stop_source> m_stop; // of what is being stored
    std::optional<Offer> m_offer;
};

} // namespace stagewright
