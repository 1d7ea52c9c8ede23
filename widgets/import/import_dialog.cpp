#include "widgets/import/import_dialog.h"

#include <algorithm>
#include <atomic>

#include <QCheckBox>
#include <QDir>
#include <QFileInfo>
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QStyle>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "traces/format/format_registry.h"
#include "widgets/background.h"
#include "widgets/literals.h"
#include "widgets/preferences/preferences.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int readingPause = 250; // ms after the last change

enum Column {
    NameColumn,
    RanksColumn,
    StepsColumn,
    ScheduleColumn,
    OpsColumn,
    KernelsColumn,
    ClocksColumn,
};

constexpr Column numberColumns[] = {RanksColumn, StepsColumn, OpsColumn, KernelsColumn};
constexpr int rowHeight = 24, rowsShown = 5; // more scroll

QLabel* wrapped(const QString& text, const char* role, QWidget* parent)
{
    auto* label = makeLabel(text, role, parent, true);
    label->setWordWrap(true);
    return label;
}

QString megabytes(std::int64_t bytes)
{
    return u"%L1"_s.arg(static_cast<double>(bytes) / 1e6, 0, 'f', bytes < 100'000'000 ? 1 : 0);
}

} // namespace

struct ImportDialog::Cell {
    std::atomic<std::int64_t> done = 0;
    std::atomic<std::int64_t> total = 0;
    std::atomic<bool> bytes = true;
};

ImportDialog::ImportDialog(QWidget* parent) : QDialog(parent)
{
    setObjectName(u"importTraces"_s);
    setWindowTitle(u"Import traces"_s);
    m_later.setSingleShot(true);
    m_later.setInterval(readingPause);
    connect(&m_later, &QTimer::timeout, this, &ImportDialog::read);
    m_poll.setInterval(80);
    connect(&m_poll, &QTimer::timeout, this, &ImportDialog::poll);
    build();
    QSettings settings;
    const QString rules = settings.value(u"import/rules"_s).toString();
    if (QFileInfo(rules).isFile()) m_rules->setText(rules);
    m_host->setChecked(settings.value(u"import/hostOps"_s, false).toBool());
    fillRuns();
    resize(900, 360); // it grows with what it has to say
}

ImportDialog::~ImportDialog()
{
    stopReading();
    if (m_reading) releaseInBackground(std::move(m_reading), QThreadPool::globalInstance()); // runs of any size
}

void ImportDialog::build()
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(20, 16, 20, 16);
    layout->setSpacing(8);
    auto* fields = new QGridLayout;
    fields->setHorizontalSpacing(10);
    fields->setVerticalSpacing(7);
    fields->setColumnStretch(1, 1);
    layout->addLayout(fields);
    const auto button = [this](const QString& text, const QString& tip, auto slot) {
        auto* made = new QPushButton(text, this);
        made->setAutoDefault(false);
        made->setToolTip(tip);
        connect(made, &QPushButton::clicked, this, slot);
        return made;
    };
    const auto label = [this](const QString& text, QWidget* buddy) {
        auto* made = makeLabel(text, "secondary", this);
        made->setBuddy(buddy);
        made->setMinimumWidth(made->fontMetrics().horizontalAdvance(text) + 4);
        made->setToolTip(buddy->toolTip());
        return made;
    };

    m_words = new QPlainTextEdit(this);
    m_words->setObjectName(u"traces"_s);
    m_words->setAccessibleName(u"Traces"_s);
    m_words->setToolTip(
        u"One per line: a file, a folder, or a pattern with * and ?. The ranks of a job become one run."_s);
    m_words->setPlaceholderText(
        u"rank*.json.gz, rank*.pftrace, a folder or archive of traces, an Nsight Systems export, a schedule CSV"_s);
    m_words->setTabChangesFocus(true);
    m_words->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_words->setFixedHeight(m_words->fontMetrics().lineSpacing() * 3 + 18);
    m_words->setAcceptDrops(false); // the window handles file drops
    m_files =
        button(u"&Files…"_s, u"Traces of one job, one file per rank, or of several jobs"_s, &ImportDialog::chooseFiles);
    m_folder = button(u"F&older…"_s, u"Every trace in a folder"_s, &ImportDialog::chooseFolder);
    auto* pick = new QVBoxLayout;
    pick->setSpacing(6);
    pick->addWidget(m_files);
    pick->addWidget(m_folder);
    pick->addStretch(1);
    fields->addWidget(label(u"&Traces"_s, m_words), 0, 0, Qt::AlignTop);
    fields->addWidget(m_words, 0, 1);
    fields->addLayout(pick, 0, 2);

    m_rules = new QLineEdit(this);
    m_rules->setObjectName(u"rules"_s);
    m_rules->setAccessibleName(u"Rules file"_s);
    m_rules->setToolTip(u"Your range names and their ops, one rule per line: F fwd stage {stage} mb {microbatch}. "
                        "Empty: the names that PyTorch, Megatron-LM, DeepSpeed, zero-bubble and vLLM use"_s);
    m_rules->setPlaceholderText(u"none: the names that known frameworks use"_s);
    m_rules->setClearButtonEnabled(true);
    m_rules->setAcceptDrops(false);
    m_chooseRules = button(u"Choose…"_s, u"A text file with one rule per line"_s, &ImportDialog::chooseRules);
    fields->addWidget(label(u"&Rules"_s, m_rules), 1, 0);
    fields->addWidget(m_rules, 1, 1);
    fields->addWidget(m_chooseRules, 1, 2);
    m_host = new QCheckBox(u"&Keep the framework's host operators as lanes"_s, this);
    m_host->setToolTip(u"Otherwise they are counted and skipped"_s);
    fields->addWidget(m_host, 2, 1, 1, 2);
    m_rulesFault = wrapped({}, "worse", this);
    m_rulesFault->setObjectName(u"rulesFault"_s);
    fields->addWidget(m_rulesFault, 3, 1, 1, 2);

    auto* state = new QHBoxLayout;
    state->setSpacing(10);
    m_stateText = makeLabel({}, "secondary", this, true);
    m_bar = new QProgressBar(this);
    m_bar->setTextVisible(false);
    m_bar->setAccessibleName(u"Reading progress"_s);
    m_stop = button({}, {}, [this] {
        if (!m_job.running()) return read();
        stopReading();
        m_stateText->setText(u"Stopped"_s);
        check();
    });
    m_stop->setObjectName(u"stop"_s);
    m_stop->setAutoDefault(true);
    m_stop->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    state->addWidget(m_stateText);
    state->addWidget(m_bar, 1);
    state->addWidget(m_stop);
    layout->addLayout(state);

    m_runs = new QTreeWidget(this);
    m_runs->setObjectName(u"boxed"_s);
    m_runs->setAccessibleName(u"Runs found"_s);
    m_runs->setToolTip(u"Runs in the traces; ticked runs are stored"_s);
    m_runs->setRootIsDecorated(false);
    m_runs->setUniformRowHeights(true);
    m_runs->setHeaderLabels({u"Run"_s, u"Ranks"_s, u"Steps"_s, u"Schedule"_s, u"Ops"_s, u"Kernels"_s, u"Clocks"_s});
    m_runs->header()->setStretchLastSection(true);
    for (const int column : numberColumns)
        m_runs->headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    layout->addWidget(m_runs);
    m_details = new QScrollArea(this);
    m_details->setObjectName(u"details"_s);
    m_details->setAccessibleName(u"What was found in the run"_s);
    m_details->setWidgetResizable(true);
    m_details->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_details->setFocusPolicy(Qt::TabFocus);
    m_details->setMinimumHeight(110);
    layout->addWidget(m_details, 1);
    m_nothing = wrapped(u"Name the traces above. What they hold is listed here before anything is stored."_s,
                        "secondary", this);
    layout->addWidget(m_nothing);
    layout->addStretch(0);

    auto* where = new QGridLayout;
    where->setHorizontalSpacing(10);
    where->setVerticalSpacing(4);
    where->setColumnStretch(1, 1);
    m_target = new QLineEdit(this);
    m_target->setObjectName(u"target"_s);
    m_target->setAccessibleName(u"Store in"_s);
    m_target->setToolTip(u"A run file. An existing file keeps its runs; these are added."_s);
    m_target->setAcceptDrops(false);
    m_chooseTarget = button(u"Choose…"_s, u"Choose another place or name"_s, &ImportDialog::chooseTarget);
    m_targetNote = makeLabel({}, "faint", this);
    where->addWidget(label(u"&Store in"_s, m_target), 0, 0);
    where->addWidget(m_target, 0, 1);
    where->addWidget(m_chooseTarget, 0, 2);
    where->addWidget(m_targetNote, 1, 1, 1, 2);
    layout->addLayout(where);

    m_fault = wrapped({}, "worse", this);
    m_fault->setObjectName(u"fault"_s);
    layout->addWidget(m_fault);
    auto* bottom = new QHBoxLayout;
    bottom->setSpacing(8);
    m_open = button(u"Op&en without storing"_s, u"Opens the schedule as a run in memory, to view and edit"_s, [this] {
        const QStringList files = question().words;
        QDialog::reject();
        emit openAsked(files);
    });
    m_cancel = button(u"Cancel"_s, u"Stores nothing"_s, &ImportDialog::reject);
    m_import = button(u"&Import"_s, u"Stores the ticked runs and shows the first"_s, [this] {
        remember();
        emit importAsked();
    });
    m_import->setObjectName(u"primary"_s);
    m_import->setDefault(true);
    bottom->addStretch(1);
    bottom->addWidget(m_open);
    bottom->addWidget(m_cancel);
    bottom->addWidget(m_import);
    layout->addLayout(bottom);
    for (QLabel* fault : {m_rulesFault, m_fault}) fault->hide();

    connect(m_words, &QPlainTextEdit::textChanged, this, &ImportDialog::changed);
    connect(m_rules, &QLineEdit::textChanged, this, &ImportDialog::changed);
    connect(m_host, &QCheckBox::toggled, this, &ImportDialog::changed);
    connect(m_runs, &QTreeWidget::currentItemChanged, this, &ImportDialog::showDetails);
    connect(m_runs, &QTreeWidget::itemChanged, this, &ImportDialog::check);
    connect(m_target, &QLineEdit::textEdited, this, [this] { m_targetTyped = !m_target->text().trimmed().isEmpty(); });
    connect(m_target, &QLineEdit::textChanged, this, &ImportDialog::check);
}

ImportQuestion ImportDialog::question() const
{
    ImportQuestion question;
    for (QString line : m_words->toPlainText().split(u'\n', Qt::SkipEmptyParts)) {
        line = line.trimmed();
        if (line.startsWith("~/"_L1)) line.replace(0, 1, QDir::homePath());
        if (!line.isEmpty()) question.words << line;
    }
    question.rulesFile = m_rules->text().trimmed();
    question.hostOps = m_host->isChecked();
    return question;
}

void ImportDialog::setTraces(const QStringList& words)
{
    m_given = !words.isEmpty();
    m_words->setPlainText(words.join(u'\n'));
    if (m_later.isActive()) {
        m_later.stop();
        read();
    }
}

void ImportDialog::setRulesFile(const QString& path) { m_rules->setText(path); }

QString ImportDialog::target() const
{
    QString path = m_target->text().trimmed();
    if (path.startsWith("~/"_L1)) path.replace(0, 1, QDir::homePath());
    if (!path.isEmpty() && QFileInfo(path).suffix().isEmpty()) path += u".stagewright"_s;
    return path;
}

void ImportDialog::setTarget(const QString& path)
{
    m_targetTyped = true;
    m_target->setText(path);
}

QString ImportDialog::faultText() const
{
    if (!m_rulesFault->isHidden()) return m_rulesFault->text();
    return m_fault->isHidden() ? QString() : m_fault->text();
}

bool ImportDialog::settled() const { return !m_later.isActive() && !m_job.running() && !m_storing; }

void ImportDialog::changed()
{
    stopReading();
    if (m_reading) releaseInBackground(std::move(m_reading), QThreadPool::globalInstance());
    m_reading.reset();
    fillRuns();
    setFault(m_fault, {});
    setFault(m_rulesFault, {});
    m_stateText->clear();
    if (!question().words.isEmpty()) m_later.start();
    check();
}

void ImportDialog::stopReading()
{
    m_job.drop();
    m_later.stop();
    m_poll.stop();
}

void ImportDialog::read()
{
    stopReading();
    m_cell = std::make_shared<Cell>();
    Progress progress;
    progress.report = [cell = m_cell](std::string_view what, std::int64_t done, std::int64_t total) {
        cell->bytes = what == "bytes";
        cell->total = total;
        cell->done = done;
    };
    m_job.start(
        [question = question(), progress](const std::stop_token& stop) mutable {
            progress.stop = stop;
            return readTraces(question, progress);
        },
        [this](ImportAnswer answer) { arrived(std::move(answer)); });
    m_poll.start();
    poll();
    check();
}

void ImportDialog::poll()
{
    const std::int64_t total = m_cell->total, done = m_cell->done;
    if (m_cell->bytes && total > 0 && done < total)
        m_stateText->setText(u"Reading %1 of %2 MB"_s.arg(megabytes(done), megabytes(total)));
    else
        m_stateText->setText(total > 0 ? u"Building runs"_s : u"Reading"_s);
    // No moving busy bar with reduced motion.
    const bool known =
        (m_cell->bytes && total > 0 && done < total) || PreferenceStore::instance().value().reducedMotion;
    m_bar->setRange(0, known ? 1000 : 0);
    if (known)
        m_bar->setValue(total > 0 ? static_cast<int>(1000 * static_cast<double>(done) / static_cast<double>(total))
                                  : 0);
}

void ImportDialog::arrived(ImportAnswer answer)
{
    stopReading();
    m_stateText->clear();
    m_reading = std::move(answer.reading);
    if (answer.error && answer.error->code != ErrorCode::Cancelled) {
        QString text = QString::fromStdString(answer.error->message);
        if (!answer.error->remedy.empty()) text += u"; "_s + QString::fromStdString(answer.error->remedy);
        setFault(answer.ofRules ? m_rulesFault : m_fault, text);
    }
    if (m_reading && !m_targetTyped) m_target->setText(m_reading->target);
    fillRuns();
    if (m_reading && m_import->isEnabled() && !m_words->hasFocus() && !m_rules->hasFocus()) m_import->setFocus();
    if (!m_reading && std::exchange(m_given, false)) m_stop->setFocus(); // Return reads again
}

void ImportDialog::fillRuns()
{
    const QSignalBlocker blocker(m_runs);
    m_runs->clear();
    if (m_reading)
        for (std::size_t i = 0; i < m_reading->result.runs.size(); ++i) {
            const ImportedRun& run = m_reading->result.runs[i];
            auto* item = new QTreeWidgetItem(m_runs);
            item->setText(NameColumn, QString::fromStdString(run.run.info.name));
            item->setCheckState(NameColumn, Qt::Checked);
            item->setText(RanksColumn, QString::number(run.run.info.ranks));
            item->setText(StepsColumn, QString::number(run.run.info.steps));
            item->setText(ScheduleColumn, m_reading->descriptions[i].schedule);
            item->setText(OpsColumn, u"%L1"_s.arg(run.ops));
            item->setText(KernelsColumn, u"%L1"_s.arg(run.kernels));
            item->setText(ClocksColumn, QString::fromStdString(run.clocks));
            for (const int column : numberColumns) item->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
            item->setSizeHint(ClocksColumn, {0, rowHeight});
            for (int column = 0; column < m_runs->columnCount(); ++column) item->setToolTip(column, item->text(column));
        }
    for (int column = 0; column + 1 < m_runs->columnCount(); ++column) {
        m_runs->resizeColumnToContents(column);
        m_runs->setColumnWidth(column, std::min(m_runs->columnWidth(column) + 12, 260));
    }
    m_runs->setFixedHeight(m_runs->header()->sizeHint().height() +
                           rowHeight * std::clamp(m_runs->topLevelItemCount(), 2, rowsShown) + 14);
    if (m_runs->topLevelItemCount() > 0) m_runs->setCurrentItem(m_runs->topLevelItem(0));
    showDetails();
    check();
}

void ImportDialog::showDetails()
{
    auto* body = new QWidget(m_details);
    body->setObjectName(u"panelBody"_s);
    auto* grid = new QGridLayout(body);
    grid->setContentsMargins(12, 10, 12, 10);
    grid->setHorizontalSpacing(14);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(1, 1);
    int row = 0;
    const auto add = [&](const QString& name, const QString& value, const QString& tip, const char* role) {
        auto* label = makeLabel(name, "secondary", body);
        auto* text = wrapped(value, role, body);
        for (QLabel* one : {label, text}) one->setToolTip(tip);
        grid->addWidget(label, row, 0, Qt::AlignTop);
        grid->addWidget(text, row++, 1);
    };
    const int current = m_runs->indexOfTopLevelItem(m_runs->currentItem());
    if (m_reading && current >= 0) {
        const ImportDescription& described = m_reading->descriptions[static_cast<std::size_t>(current)];
        for (const ImportFact& fact : described.facts)
            add(fact.label, fact.value, fact.tooltip, fact.wrong ? "strong" : "value");
        for (qsizetype i = 0; i < described.notes.size(); ++i)
            add(i == 0 ? u"Notes"_s : QString(), described.notes[i], u"Kept as the run's note"_s, "value");
    }
    if (m_reading)
        // beside traces other files are usual
        for (qsizetype i = 0; i < m_reading->refused.size(); ++i)
            add(i == 0 ? u"Not read"_s : QString(), m_reading->refused[i], u"The other files are read anyway"_s,
                m_reading->descriptions.empty() ? "worse" : "secondary");
    grid->setRowStretch(row, 1);
    m_details->setWidget(body);
    const int wide = std::max(400, width() - 44),
              tall = grid->hasHeightForWidth() ? grid->totalHeightForWidth(wide) : body->sizeHint().height();
    m_details->setMaximumHeight(std::max(110, tall + 6)); // no larger than what it says
    m_details->setVisible(row > 0);
    m_runs->setVisible(m_runs->topLevelItemCount() > 0);
    m_nothing->setVisible(row == 0);
    if (row > 0) resize(width(), std::clamp(295 + m_runs->height() + tall, height(), 660));
}

QString ImportDialog::detailsText() const
{
    QStringList lines;
    for (const QLabel* label : m_details->widget()->findChildren<QLabel*>())
        if (!label->text().isEmpty()) lines << label->text();
    return lines.join(u'\n');
}

std::vector<std::size_t> ImportDialog::chosen() const
{
    std::vector<std::size_t> runs;
    for (int i = 0; i < m_runs->topLevelItemCount(); ++i)
        if (m_runs->topLevelItem(i)->checkState(NameColumn) == Qt::Checked) runs.push_back(static_cast<std::size_t>(i));
    return runs;
}

void ImportDialog::check()
{
    const bool reading = m_job.running();
    m_bar->setVisible(reading || m_storing);
    m_stop->setText(reading ? u"Sto&p"_s : u"Read &again"_s);
    m_stop->setToolTip(reading ? u"Stops reading; keeps nothing"_s : u"Reads the traces again"_s);
    m_stop->setVisible(reading || (!m_reading && !m_later.isActive() && !m_storing && !question().words.isEmpty()));
    for (QWidget* field : std::initializer_list<QWidget*>{m_words, m_files, m_folder, m_rules, m_chooseRules, m_host,
                                                          m_runs, m_target, m_chooseTarget})
        field->setEnabled(!m_storing);
    m_import->setEnabled(m_reading && !m_storing && !chosen().empty() && !target().isEmpty());
    if (m_import->isEnabled() && std::exchange(m_given, false)) m_import->setFocus(); // Return imports
    const QStringList words = question().words;
    const bool schedules = !words.isEmpty() && std::all_of(words.begin(), words.end(), [](const QString& word) {
        return holdsOrder(word.toStdString()) && QFileInfo(word).isFile();
    });
    m_open->setVisible(schedules);
    m_open->setEnabled(!m_storing);
    const QString path = target();
    m_targetNote->setText(path.isEmpty()            ? QString()
                          : QFileInfo::exists(path) ? u"This file exists: the runs are added to it."_s
                                                    : u"A new file."_s);
}

void ImportDialog::setFault(QLabel* label, const QString& text)
{
    const QString shown = sentence(text);
    label->setText(shown);
    label->setVisible(!shown.isEmpty());
    if (label == m_rulesFault) {
        m_rules->setProperty("fault", !shown.isEmpty());
        m_rules->style()->unpolish(m_rules);
        m_rules->style()->polish(m_rules);
    }
}

void ImportDialog::setStoring(bool storing)
{
    m_storing = storing;
    if (storing) {
        m_bar->setRange(0, PreferenceStore::instance().value().reducedMotion ? 1 : 0);
        setFault(m_fault, {});
    }
    m_stateText->setText(storing ? u"Storing"_s : QString());
    check();
}

void ImportDialog::showFault(const Error& error)
{
    setFault(m_fault,
             QString::fromStdString(error.remedy.empty() ? error.message : error.message + "; " + error.remedy));
    check();
    if (m_import->isEnabled()) m_import->setFocus(); // the fields that lost the keys while it stored don't take Return
}

void ImportDialog::reject()
{
    if (m_storing) {
        m_stateText->setText(u"Stopping"_s);
        emit storingCancelled();
        return;
    }
    stopReading();
    QDialog::reject();
}

void ImportDialog::remember() const
{
    QSettings settings;
    const QStringList words = question().words;
    if (!words.isEmpty()) settings.setValue(u"import/folder"_s, QFileInfo(words.front()).absolutePath());
    settings.setValue(u"import/rules"_s, m_rules->text().trimmed());
    settings.setValue(u"import/hostOps"_s, m_host->isChecked());
}

} // namespace stagewright
