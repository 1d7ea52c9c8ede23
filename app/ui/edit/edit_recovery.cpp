#include "app/ui/edit/edit_recovery.h"

#include <QDateTime>
#include <QFileInfo>
#include <QLocale>
#include <QVBoxLayout>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/edit/recovery_bar.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/workspace.h"
#include "traces/run/simulated_run.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"

namespace stagewright {

EditRecovery::EditRecovery(Workspace& workspace, EditController& edits)
    : QObject(&edits), m_workspace(workspace), m_edits(edits), m_editor(&edits.editor()),
      m_autosave(new EditAutosave(workspace.jobs(), this))
{
    connect(&PreferenceStore::instance(), &PreferenceStore::changed, this, [this] {
        m_autosave->preferencesChanged();
        emit preferencesChanged();
    });
    connect(m_autosave, &EditAutosave::failed, this,
            [this](const Error& error) { m_workspace.banner()->showError(QString(), error); });
}

void EditRecovery::keep(const std::shared_ptr<const RunView>& source)
{
    if (source == nullptr || !m_editor->changed()) return m_autosave->clear(); // nothing to lose
    m_autosave->changed([this, source] {
        EditRecord record;
        record.when = QDateTime::currentDateTimeUtc().toString(Qt::ISODate);
        record.source = runTitle(source->run->info);
        record.file = source->ref.file;
        record.run = source->ref.id;
        record.changes = m_editor->undoStack()->index();
        record.original = m_editor->original();
        record.edited = m_editor->schedule();
        record.costs = m_editor->costs();
        return record;
    });
}

void EditRecovery::offer()
{
    m_orphan = m_autosave->takeOrphan();
    if (!m_orphan) return;
    m_bar = new RecoveryBar(m_workspace.window()->centralWidget());
    const EditRecord& record = m_orphan->record;
    const QDateTime when = QDateTime::fromString(record.when, Qt::ISODate).toLocalTime();
    const QString file =
        record.file.startsWith("sim:"_L1) ? u"not saved in a file"_s : QFileInfo(record.file).fileName();
    m_bar->offer(
        u"“%1” was being edited when the window closed"_s.arg(record.source),
        u"%1; %2; last saved %3"_s.arg(file, record.changes == 1 ? u"1 change"_s : u"%1 changes"_s.arg(record.changes),
                                       QLocale().toString(when, QLocale::ShortFormat)));
    m_workspace.banner()->carry(m_bar);
    connect(m_bar, &RecoveryBar::recoverAsked, this, &EditRecovery::recover);
    connect(m_bar, &RecoveryBar::discardAsked, this, [this] {
        if (m_orphan) m_autosave->drop(*m_orphan);
        m_orphan.reset();
        m_bar->hide();
        offer(); // another one
    });
    connect(m_bar, &RecoveryBar::laterAsked, this, [this] {
        if (m_orphan) m_autosave->release(*m_orphan);
        m_orphan.reset();
        m_bar->hide();
    });
}

// In its original run if that is unchanged; otherwise as a new run: the record has the original and the costs.
void EditRecovery::recover()
{
    if (!m_orphan) return;
    const EditAutosave::Orphan orphan = std::move(*m_orphan);
    m_orphan.reset();
    m_bar->hide();
    const EditRecord& record = orphan.record;
    const QString change = record.changes == 1 ? u"Recover 1 change"_s : u"Recover %1 changes"_s.arg(record.changes);
    m_edits.editRunAgain({record.file, record.run}, record.original, change, record.edited,
                         [this, orphan, change](bool done) {
                             if (!done) {
                                 auto run = simulatedRun(orphan.record.original, orphan.record.costs);
                                 if (!run) {
                                     m_autosave->release(orphan);
                                     m_workspace.banner()->showError(u"the order can't be recovered"_s, run.error());
                                     return;
                                 }
                                 run->info.name = orphan.record.source.toStdString();
                                 m_edits.editRun(std::move(*run), change, orphan.record.edited);
                             }
                             m_autosave->drop(orphan); // saved again under this window's name, within two seconds
                         });
}

} // namespace stagewright
