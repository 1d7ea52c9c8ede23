#include "app/ui/exchange/exchange_controller.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>

#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "app/version/version.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/export/format_dialog.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"

namespace stagewright {
namespace {

constexpr qint64 silentMs = 400; // ms without a progress message

// Beside the run's file, with the suffix of the format; of a folder with its name.
QString suggested(const RunView& view, const FormatInfo& format, bool edited)
{
    QString name = QString::fromStdString(view.run->info.name);
    name.replace(u'/', u'-');
    if (edited && format.order) name += u".edited"_s;
    name += format.folder ? u' ' + qtText(format.name) : qtText(format.suffixes.front());
    const QString folder =
        view.ref.file.startsWith("sim:"_L1) ? QString() : QFileInfo(view.ref.file).absolutePath() + u'/';
    return folder + name;
}

QString filterOf(const FormatInfo& format)
{
    QStringList patterns;
    for (const std::string_view suffix : format.suffixes) patterns << u'*' + qtText(suffix);
    return format.folder ? u"Folders (*)"_s : u"%1 (%2)"_s.arg(qtText(format.title), patterns.join(u' '));
}

std::string sourceOf(const RunView& view)
{
    if (view.ref.file.startsWith("sim:"_L1)) return "a run that is not saved";
    return QFileInfo(view.ref.file).fileName().toStdString() + ", run " + std::to_string(view.ref.id);
}

} // namespace

struct ExchangeController::Asked {
    const FormatInfo* format = nullptr;
    ExportRequest request;
    std::shared_ptr<const Run> run, against;
    std::optional<Schedule> order; // edited
};

struct ExchangeController::Cell {
    std::atomic<std::int64_t> done = 0;
    std::atomic<std::int64_t> total = 0;
};

std::vector<ActionEntry> ExchangeController::actionTable()
{
    return {
        item("exportRun", ActionGroup::FileExport, u"Export for ot&her tools…"_s, {},
             u"Traces, PyTorch schedules, tables: in every format that Stagewright writes"_s, {.at = 10}),
    };
}

ExchangeController::ExchangeController(Workspace& workspace)
    : Feature(workspace), m_checking(workspace.jobs()), m_writing(workspace.jobs())
{
    QAction* action = workspace.actions()["exportRun"];
    connect(&workspace, &Workspace::actionsRefreshed, this, [this, action] {
        action->setEnabled(m_workspace.shown().mode() != Shown::Mode::Empty && m_workspace.shown().view());
    });
    connect(action, &QAction::triggered, this, &ExchangeController::openDialog);
    m_poll.setInterval(150);
    connect(&m_poll, &QTimer::timeout, this, &ExchangeController::poll);
}

void ExchangeController::cancel() { m_writing.stop(); }

FormatDialog* ExchangeController::openDialog()
{
    if (m_dialog) {
        m_dialog->raise();
        m_dialog->activateWindow();
        return m_dialog;
    }
    const auto shown = m_workspace.shown().view();
    if (!shown) return nullptr;
    // of a growing run only the newest step is here
    m_dialog = new FormatDialog(shown->partial || shown->panel->isPart(), m_workspace.window());
    m_dialog->setObjectName(u"exportRun"_s);
    m_dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(m_dialog, &FormatDialog::placeAsked, this, [this, dialog = m_dialog] {
        dialog->setBusy(true);
        ask(
            dialog->format(), dialog->options(),
            [dialog](const Error& why) {
                if (!dialog) return;
                dialog->setBusy(false);
                dialog->showFault(why);
            },
            [dialog] {
                if (dialog) dialog->close();
            });
    });
    m_dialog->open();
    return m_dialog;
}

// The first format of the order that is read, too.
void ExchangeController::exportOrder()
{
    const auto formats = allFormats();
    const auto found = std::find_if(formats.begin(), formats.end(), [](const FormatInfo* one) {
        return one->order && one->read != nullptr && one->write != nullptr;
    });
    if (found == formats.end()) return;
    ask(
        **found, {}, [this](const Error& why) { m_workspace.banner()->showRefusal(u"could not export"_s, why); },
        [] {});
}

std::shared_ptr<ExchangeController::Asked> ExchangeController::asked(const FormatInfo& format,
                                                                     const TextPairs& options) const
{
    const Shown& now = m_workspace.shown();
    const auto shown = now.view(),
               other = now.mode() == Shown::Mode::Compare && format.compares ? now.other() : nullptr;
    auto asked = std::make_shared<Asked>();
    asked->format = &format;
    asked->run = other ? other->run : shown->run;
    asked->against = other ? shown->run : nullptr;
    if (format.order && now.mode() == Shown::Mode::Edit)
        asked->order = m_workspace.feature<OrderEditing>()->editor().schedule();
    ExportRequest& request = asked->request;
    request.run = asked->run.get();
    request.against = asked->against.get();
    if (asked->order) request.order = &*asked->order;
    request.step = shown->step;
    request.program = "Stagewright " + versionText();
    request.source = asked->order ? std::string("an edited order") : sourceOf(other ? *other : *shown);
    if (other) request.againstSource = sourceOf(*shown);
    request.options = options;
    return asked;
}

void ExchangeController::ask(const FormatInfo& format, const TextPairs& options,
                             std::function<void(const Error&)> refused, std::function<void()> accepted)
{
    if (!m_workspace.shown().view()) return;
    m_checking.start(
        [asked = asked(format, options)] {
            return asked->format->can == nullptr ? Result<void>() : asked->format->can(asked->request);
        },
        [this, &format, options, refused = std::move(refused),
         accepted = std::move(accepted)](const Result<void>& can) {
            if (!can) return refused(can.error());
            accepted();
            askPlace(format, options);
        });
}

// Not application modal; a folder is entered as a new name.
void ExchangeController::askPlace(const FormatInfo& format, const TextPairs& options)
{
    const auto shown = m_workspace.shown().view();
    if (!shown) return;
    const QString suggestion = suggested(*shown, format, m_workspace.shown().mode() == Shown::Mode::Edit);
    const QString title = format.folder ? u"Export %1 into a new folder"_s : u"Export %1"_s;
    auto* dialog = new QFileDialog(m_workspace.window(), title.arg(qtText(format.title)), QFileInfo(suggestion).path(),
                                   filterOf(format));
    dialog->setObjectName(u"exportTo"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->selectFile(QFileInfo(suggestion).fileName());
    connect(dialog, &QFileDialog::fileSelected, this, [this, &format, options](QString path) {
        if (path.isEmpty()) return;
        if (!format.folder && QFileInfo(path).suffix().isEmpty()) path += qtText(format.suffixes.front());
        write(format, path, options);
    });
    dialog->open();
}

void ExchangeController::write(const FormatInfo& format, const QString& path, const TextPairs& options)
{
    if (!m_workspace.shown().view()) return;
    if (m_writing.running())
        return m_workspace.banner()->showRefusal(u"%1 is being written"_s.arg(m_path), u"wait for it, or cancel it"_s);
    const auto what = asked(format, options);
    m_cell = std::make_shared<Cell>();
    m_path = path;
    m_told.clear();
    what->request.path = path.toStdString();
    what->request.progress.report = [cell = m_cell](std::string_view, std::int64_t done, std::int64_t total) {
        cell->total = total;
        cell->done = done;
    };
    m_since.start();
    m_poll.start();
    m_writing.start(
        [what](const std::stop_token& stop) {
            what->request.progress.stop = stop;
            return what->format->write(what->request);
        },
        [this, what](const Result<WrittenFile>& written) { ended(*what, written); });
}

void ExchangeController::poll()
{
    if (!m_writing.running() || m_since.elapsed() < silentMs) return;
    const std::int64_t total = m_cell->total, done = m_cell->done;
    const QString name = QFileInfo(m_path).fileName();
    const QString text =
        total > 0 ? u"Writing %1: %2 %"_s.arg(name, QString::number(100 * done / total)) : u"Writing %1"_s.arg(name);
    if (m_told.isEmpty()) {
        m_workspace.banner()->showQuestion(text, {}, u"Cancel"_s, [this] { cancel(); });
        m_workspace.banner()->setAbout([] { return true; }); // the file is being written whatever is shown
    } else if (m_workspace.banner()->text() == m_told)       // otherwise it shows something else by now
        m_workspace.banner()->setMessage(text);
    else
        return;
    m_told = m_workspace.banner()->text();
}

void ExchangeController::ended(const Asked& asked, const Result<WrittenFile>& written)
{
    m_poll.stop();
    if (!m_told.isEmpty() && m_workspace.banner()->text() == m_told) m_workspace.banner()->clear();
    m_told.clear();
    const QString place = QDir::toNativeSeparators(m_path);
    if (written) {
        // read again, it is the order
        const bool whole = asked.format->read != nullptr && asked.request.options.empty();
        if (asked.order && whole && m_workspace.shown().mode() == Shown::Mode::Edit)
            m_workspace.feature<OrderEditing>()->saved();
        m_workspace.room().tell(u"Wrote %1: %2"_s.arg(place, QString::fromStdString(written->sentence)), 8000);
    } else if (written.error().code == ErrorCode::Cancelled) {
        m_workspace.room().tell(u"Cancelled; %1 was not written"_s.arg(place), 8000);
    } else {
        m_workspace.banner()->showError(u"could not export"_s, written.error());
    }
}

FeatureEntry exchangeFeature() { return featureEntry<ExchangeController>(); }

} // namespace stagewright
