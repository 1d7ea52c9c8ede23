// ExportController: exports for people, to a file or the clipboard: pictures of the view, HTML reports, tables. GUI
// thread only; files are written off it.
#pragma once

#include <optional>

#include <QObject>
#include <QPointer>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "widgets/export/picture.h"
#include "widgets/table_copy.h"

namespace stagewright {

class ExportDialog;
struct RunView;

class ExportController : public Feature, public PictureMaking {
    Q_OBJECT
public:
    explicit ExportController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();

    // The screen content: timeline and memory of the run, the comparison, the edited order or the current tool, with a
    // caption that states schedule, costs, clock and provenance. Has no parts if nothing is shown.
    PictureContent picture() const override;
    // size and content as on screen
    PictureStyle screenStyle() const;
    // before it returns
    Result<void> write(const QString& path, const PictureStyle& style, std::optional<PictureKind> kind = {});
    Result<void> write(const QString& path) { return write(path, screenStyle()); }
    // in the dialog's format and with its suffix; closes the dialog
    void savePicture(ExportDialog* dialog, const QString& path);
    // not modal; deleted when closed; null if nothing is shown
    ExportDialog* openDialog();
    QString link() const;           // to what is shown; "": nothing is
    TableText focusedTable() const; // the focused table, else the panel at the right

private:
    void saveAsked(ExportDialog* dialog);
    void copyAsked(const ExportDialog& dialog);
    void exportReport();
    void copy(TableFormat format);
    void refresh(); // enables actions
    QStringList captionOf(const RunView& view, const QString& mark) const;
    QString titleOf(const RunView& view, const QString& name) const;

    QPointer<ExportDialog> m_dialog;
};

} // namespace stagewright
