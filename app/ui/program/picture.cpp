#include "app/ui/program/picture.h"

#include <cstdio>

#include <QBuffer>
#include <QDialog>
#include <QFileInfo>
#include <QPainter>

#include "app/ui/exchange/export_controller.h"
#include "app/ui/exchange/import_controller.h"
#include "app/ui/program/showing.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/format/atomic_file.h"
#include "widgets/import/import_dialog.h"
#include "widgets/literals.h"
#include "widgets/theme.h"

namespace stagewright {
namespace {

void switchOff(Workspace& workspace, ActionId id)
{
    if (QAction* action = workspace.actions()[id]; action->isChecked()) action->trigger();
}

PictureStyle styleOf(const ExportController& exporting, const CommandLine& line)
{
    PictureStyle style = exporting.screenStyle();
    if (line.picture.paper) style.look = PictureStyle::Look::Paper;
    if (line.picture.millimetres > 0) style.widthMm = line.picture.millimetres;
    if (line.picture.points > 0) style.textPoints = line.picture.points;
    style.hatched = line.picture.hatched;
    style.caption = line.picture.caption;
    style.legend = line.picture.legend;
    if (line.picture.parts.isEmpty()) return style;
    style.without.clear();
    for (const PicturePart& part : exporting.picture().parts)
        if (part.role == PicturePart::Role::View && !line.picture.parts.contains(part.name.toLower()))
            style.without << part.name;
    return style;
}

int exportPicture(ExportController& exporting, const CommandLine& line)
{
    const PictureStyle style = styleOf(exporting, line);
    const auto kind = pictureKind(line.exportKind);
    if (embedsImage(exporting.picture(), style, *kind))
        std::fprintf(stderr, "stagewright-ui: more than %lld slices are in view, so they are embedded as an image\n",
                     static_cast<long long>(mostVectorSlices));
    auto done = exporting.write(line.output, style, kind);
    if (done) return 0;
    return complain(done.error().code == ErrorCode::Usage ? 2 : 5, QString::fromStdString(done.error().message),
                    QString::fromStdString(done.error().remedy));
}

// A dialog in the middle of the window's picture.
void drawOver(QImage& image, QDialog& dialog, const Theme& theme)
{
    waitFor(200);
    const QPixmap over = dialog.grab();
    const double ratio = image.devicePixelRatio();
    const QSizeF size = over.deviceIndependentSize();
    const QPointF at((image.width() / ratio - size.width()) / 2, (image.height() / ratio - size.height()) / 2);
    QPainter painter(&image);
    painter.fillRect(QRectF(QPointF(), QSizeF(image.size()) / ratio), QColor(0, 0, 0, 90));
    painter.drawPixmap(at, over);
    painter.setPen(theme.faint); // a window manager's frame
    painter.drawRect(QRectF(at, size).adjusted(-0.5, -0.5, 0.5, 0.5));
}

int screenshot(MainWindow& window, const CommandLine& line, QDialog* open)
{
    QImage image = window.grab().toImage();
    const bool traces = window.workspace().feature<ImportController>()->dialog() != nullptr; // the named files are
    const ShowEntry* shown = findShown(traces ? u"import"_s : line.show);
    if (shown != nullptr && shown->dialog != nullptr) {
        const ShownDialog over = openDialog(window, *shown, line.schedule, true);
        if (!over.fault.isEmpty()) return complain(5, over.fault);
        open = over.dialog;
    }
    if (open != nullptr) drawOver(image, *open, Theme::named(line.theme.value_or(ThemeName::Light)));
    QBuffer bytes;
    bytes.open(QIODevice::WriteOnly);
    if (!image.save(&bytes, QFileInfo(line.screenshot).suffix().toUtf8().constData()))
        return complain(5, u"file %1 could not be written"_s.arg(line.screenshot), u"use the suffix .png"_s);
    const auto written =
        writeFileAtomically(line.screenshot.toStdString(),
                            std::string_view(bytes.data().constData(), static_cast<std::size_t>(bytes.size())));
    if (!written)
        return complain(5, QString::fromStdString(written.error().message),
                        QString::fromStdString(written.error().remedy));
    return 0;
}

} // namespace

int drawAndLeave(MainWindow& window, const CommandLine& line)
{
    Workspace& workspace = window.workspace();
    for (const QString& file : line.files)
        if (!QFileInfo(file).isReadable())
            return complain(3, u"file %1 can't be read"_s.arg(file), u"check its name"_s);
    window.resize(line.size);
    if (line.hideRuns) switchOff(workspace, "runsList");
    window.show();
    if (const int code = showAsked(window, line)) return code;
    if (!waitUntil([&] { return workspace.settled() || !workspace.banner()->text().isEmpty(); }, 120000))
        return complain(3, u"reading timed out"_s);
    const QString banner = workspace.banner()->text();
    auto* stuck = window.findChild<QDialog*>(u"deadlock"_s); // an order that hangs has its own dialog
    if (!line.files.isEmpty() && workspace.shown().mode() == Shown::Mode::Empty && stuck == nullptr &&
        workspace.feature<ImportController>()->dialog() == nullptr)
        return complain(3, banner.isEmpty() ? u"no run to draw in %1"_s.arg(line.files.first()) : banner);
    if (line.hideMemory) switchOff(workspace, "memory");
    showPlace(window, line);
    if (const int code = showLesson(window, line)) return code;
    showView(window, line);
    if (!waitUntil([&] { return workspace.settled(); }, 60000)) return complain(5, u"the tool timed out"_s);
    waitFor(400); // exact frames come from a worker
    return line.exportKind.isEmpty() ? screenshot(window, line, stuck)
                                     : exportPicture(*workspace.feature<ExportController>(), line);
}

} // namespace stagewright
