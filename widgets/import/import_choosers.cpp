// The import dialog's file dialogs.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QSettings>

#include "widgets/import/import_dialog.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"

namespace stagewright {

QString ImportDialog::folder() const
{
    const QStringList words = question().words;
    if (!words.isEmpty()) return QFileInfo(words.last()).absolutePath();
    const QString last = QSettings().value(u"import/folder"_s).toString();
    return QFileInfo(last).isDir() ? last : PreferenceStore::instance().value().folder;
}

void ImportDialog::addWords(const QStringList& words)
{
    if (words.isEmpty()) return;
    QSettings().setValue(u"import/folder"_s, QFileInfo(words.first()).absolutePath());
    QStringList all = question().words;
    for (const QString& word : words)
        if (!all.contains(word)) all << word;
    setTraces(all);
}

void ImportDialog::chooseFiles()
{
    auto* dialog = new QFileDialog(this, u"Choose traces"_s, folder(),
                                   u"Traces and schedules (%1);;All files (*)"_s.arg(readPatterns().join(u' ')));
    dialog->setObjectName(u"chooseTraces"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFiles);
    connect(dialog, &QFileDialog::filesSelected, this, &ImportDialog::addWords);
    dialog->open();
}

void ImportDialog::chooseFolder()
{
    auto* dialog = new QFileDialog(this, u"Choose a folder of traces"_s, folder());
    dialog->setObjectName(u"chooseTraceFolder"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::filesSelected, this, &ImportDialog::addWords);
    dialog->open();
}

void ImportDialog::chooseRules()
{
    const QString now = m_rules->text().trimmed();
    auto* dialog = new QFileDialog(this, u"Choose rules"_s, now.isEmpty() ? folder() : QFileInfo(now).absolutePath(),
                                   u"Rules (*.txt *.rules);;All files (*)"_s);
    dialog->setObjectName(u"chooseRules"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, &ImportDialog::setRulesFile);
    dialog->open();
}

void ImportDialog::chooseTarget()
{
    auto* dialog = new QFileDialog(this, u"Store the runs in"_s, QFileInfo(target()).absolutePath(),
                                   u"Run files (*.stagewright)"_s);
    dialog->setObjectName(u"chooseTarget"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setOption(QFileDialog::DontConfirmOverwrite); // runs are added
    dialog->setDefaultSuffix(u"stagewright"_s);
    dialog->selectFile(QFileInfo(target()).fileName());
    connect(dialog, &QFileDialog::fileSelected, this, &ImportDialog::setTarget);
    dialog->open();
}

} // namespace stagewright
